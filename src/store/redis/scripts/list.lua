-- SPDX-License-Identifier: Apache-2.0
-- mortise_list. ARGV[1] a queue's whole name or "", ARGV[2] else how names are to begin, ARGV[3]
-- the key of a claim of that name.
-- One row a queue: name, "CAPACITY KIND", then number, weight, since, label, "1" or "0", whether it
-- was detached, and for how long it has been left behind, of each ticket but those of the dead that
-- leave nothing. Of a claim also whose it is: the end of our ticket's identity, with which our tokens
-- begin, or a digest of another program's.
local rows = {}
local function show(queue, described)
  local row = {queue, described}
  each(queue, function(entry, number)
    local session = session_in(entry)
    local detached = session == nobody
    local left = tonumber(call('ZSCORE', sessions, session) or 0) - now
    local stays = left_behind(session)
    if stays then left = math.max(left - 1, 1) end -- to which one was added
    if left <= 0 and not detached then -- nobody has come upon it yet
      local field = call('HGET', session_key(session), ticket_in(entry))
      local delay = string.match(field or '', '^%d+~(%d+)')
      stays = delay ~= nil
      left = left + tonumber(delay or 0)
    end
    if detached or left > 0 then
      row[#row + 1] = text_of(number)
      row[#row + 1] = text_of(weight_in(entry))
      row[#row + 1] = since_in(entry)
      row[#row + 1] = call('HGET', session_key(session), '@label') or ''
      row[#row + 1] = detached and '1' or '0'
      row[#row + 1] = text_of(stays and left or 0)
    end
    return false
  end)
  if #row > 2 then rows[#rows + 1] = row end
end
if ARGV[1] ~= '' then
  local described = call('HGET', queues, ARGV[1])
  if described then show(ARGV[1], described) end
  -- A claim, of whatever program; its key may be in a slot of a cluster that is not kept here.
  local here, key = pcall(call, 'TYPE', ARGV[3])
  if here and key.ok == 'string' then
    local is = call('HMGET', base .. 'n:' .. ARGV[3], 'token', 'number', 'session', 'ticket')
    local token = call('GET', ARGV[3])
    local ours = is[1] == token
    rows[#rows + 1] = {ARGV[1], '1 exclusive', ours and is[2] or '0', '1', '0',
                       ours and call('HGET', session_key(is[3]), '@label') or '', '0', '0',
                       ours and string.sub(is[4], -12)
                         or #token == 40 and string.match(token, '^%x+$') and string.sub(token, 1, 12)
                         or redis.sha1hex(token)}
  end
else
  local all = call('HGETALL', queues)
  for i = 1, #all, 2 do
    if all[i] ~= '' and string.sub(all[i], 1, #ARGV[2]) == ARGV[2] then show(all[i], all[i + 1]) end
  end
end
return rows
