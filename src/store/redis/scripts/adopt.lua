-- SPDX-License-Identifier: Apache-2.0
-- APPEND of what was detached. ARGV as in append.lua.
-- {VIEW, ...}, {NONE}, {MISMATCH}, {LOST}, {STALE}
local no, own = refused(ARGV[1], tonumber(ARGV[2]), ARGV[3], '!' .. ARGV[3])
if no then return no end
local session, ticket, capacity = ARGV[1], ARGV[3], tonumber(ARGV[6])
local ours = own[3]
if not ours then
  local left = call('HMGET', session_key(nobody), ticket, '!' .. ticket)
  own[3], own[4] = left[1], left[2]
end
if not own[3] then return {'NONE'} end
local queue, number, entry, valued = entry_at(own[3])
if not entry or queue ~= ARGV[4] then return {'NONE'} end
local weight = weight_in(entry)
if call('HGET', queues, queue) ~= text_of(capacity) .. ' ' .. ARGV[5] or
   weight ~= tonumber(ARGV[7]) then
  return {'MISMATCH'}
end
if not ours then
  call('ZREM', queue_key(queue), entry)
  call('ZADD', queue_key(queue), number,
       entry_of(ticket, session, weight, ARGV[10], since_in(entry)))
  call('HDEL', session_key(nobody), ticket, '!' .. ticket)
  call('HSET', session_key(session), ticket, field_of(number, ARGV[11], valued, queue))
  if own[4] then call('HSET', session_key(session), '!' .. ticket, own[4]) end
end
return view(queue, number, weight, capacity, own[4])
