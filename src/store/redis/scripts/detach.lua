-- SPDX-License-Identifier: Apache-2.0
-- DETACH. ARGV[3] ticket, 4 queue, 5 the lower weight, 6 the identity it gets.
-- {VIEW, ...}, {GONE}, {LOST}, {STALE}
local no, own = refused(ARGV[1], tonumber(ARGV[2]), ARGV[3], '!' .. ARGV[3])
if no then return no end
local ticket, heir = ARGV[3], ARGV[6]
local done = call('HGET', session_key(nobody), heir)
if done then own[3] = done end
if not own[3] then return {'GONE'} end
local queue, number, entry, valued = entry_at(own[3])
if not entry or queue ~= ARGV[4] then return {'GONE'} end
local weight = weight_in(entry)
if not done then
  local lower = math.min(weight, tonumber(ARGV[5]))
  call('ZREM', queue_key(queue), entry)
  call('ZADD', queue_key(queue), number, entry_of(heir, nobody, lower, ':', since_in(entry)))
  call('HDEL', session_key(ARGV[1]), ticket, '!' .. ticket)
  call('HSET', session_key(nobody), heir, field_of(number, '', valued, queue))
  if own[4] then call('HSET', session_key(nobody), '!' .. heir, own[4]) end
  if valued then
    local value = call('HGET', base .. 'values', ticket)
    call('HDEL', base .. 'values', ticket)
    call('HSET', base .. 'values', heir, value)
  end
  if lower < weight then depart(queue, number, weight - lower) end
  weight = lower
end
return view(queue, number, weight, capacity_of(queue), own[4])
