-- mortise_revoke and mortise_break. ARGV[1] "revoke" or "break", 2 queue, 3 the ticket's number
-- ("0": all who hold). {DONE}, {NONE}
local queue, wanted, done = ARGV[2], tonumber(ARGV[3]), false
local dead = {}
each(queue, function(entry)
  if left_of(session_in(entry)) <= 0 then dead[#dead + 1] = session_in(entry) end
  return false
end)
for _, session in ipairs(dead) do bury(session) end
settle()

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

if ARGV[1] == 'revoke' then
  revoke()
else
  local entry = call('ZRANGEBYSCORE', queue_key(queue), wanted, wanted)[1]
  if entry then
    local key, ticket = session_key(session_in(entry)), ticket_in(entry)
    local field = call('HGET', key, ticket)
    tell(entry, 'gone')
    call('HDEL', key, ticket, '!' .. ticket)
    take_out(field)
    settle()
    done = true
  end
end
return {done and 'DONE' or 'NONE'}
