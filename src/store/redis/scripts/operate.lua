-- SPDX-License-Identifier: Apache-2.0
-- mortise_revoke and mortise_break. ARGV[1] "revoke" or "break", 2 queue, 3 the ticket's number
-- ("0": all who hold), 4 the key of a claim of that name. {DONE}, {NONE}
-- A claim of the same name is its holder's whom claim_show.lua shows, as long as the key has that
-- one's token; who has it by another program is shown nowhere, and left alone.
local queue, wanted, claim, done = ARGV[2], tonumber(ARGV[3]), ARGV[4], false
bury_dead_in(queue)

local function revoke()
  local capacity, ahead = capacity_of(queue), 0
  each(queue, function(entry, number)
    local weight = weight_in(entry)
    if ahead + weight > capacity then return true end
    ahead = ahead + weight
    if wanted == 0 or wanted == number then
      done = true
      tell(entry, 'revoked ' .. text_of(call('HINCRBY', session_key(session_in(entry)),
                                                   '!' .. ticket_in(entry), 1)))
    end
    return false
  end)
end

local function operate_claim()
  local shown = base .. 'n:' .. claim
  local is = call('HMGET', shown, 'token', 'number', 'session', 'ticket')
  if not is[1] or (wanted ~= 0 and wanted ~= tonumber(is[2])) then return end
  local here, key = pcall(call, 'TYPE', claim) -- a cluster may keep it elsewhere
  if not here or key.ok ~= 'string' or call('GET', claim) ~= is[1] then return end
  local what = 'gone'
  if ARGV[1] == 'revoke' then
    what = 'revoked ' .. text_of(call('HINCRBY', shown, 'asked', 1))
  else
    call('DEL', claim, shown)
    call('PUBLISH', base .. 'w:' .. claim, claim)
  end
  tell(is[4] .. is[3], what)
  done = true
end

operate_claim()
if ARGV[1] == 'revoke' then
  revoke()
else
  local entry = call('ZRANGEBYSCORE', queue_key(queue), wanted, wanted)[1]
  if entry then
    local key, ticket = session_key(session_in(entry)), ticket_in(entry)
    tell(entry, 'gone')
    call('HDEL', key, ticket, '!' .. ticket)
    take_out(queue, wanted, entry, true)
    if left_behind(session_in(entry)) then bury(session_in(entry)) end
    settle()
    done = true
  end
end
return {done and 'DONE' or 'NONE'}
