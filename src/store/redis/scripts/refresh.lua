-- SPDX-License-Identifier: Apache-2.0
-- REFRESH, LIGHTEN and SET_VALUE. ARGV[3] ticket, 4 queue, 5 the lower weight (0: as it is),
-- 6 the new value, if there is one.
-- {VIEW, ...}, {GONE}, {LOST}, {STALE}
local no, own = refused(ARGV[1], tonumber(ARGV[2]), ARGV[3], '!' .. ARGV[3])
if no then return no end
if not own[3] then return {'GONE'} end
local queue, number, entry, _, delay = entry_at(own[3])
if not entry or queue ~= ARGV[4] then return {'GONE'} end
local weight, lower = weight_in(entry), tonumber(ARGV[5])
if lower > 0 and lower < weight then
  call('ZREM', queue_key(queue), entry)
  call('ZADD', queue_key(queue), number,
             entry_of(ARGV[3], ARGV[1], lower, mark_in(entry), since_in(entry)))
  depart(queue, number, weight - lower)
  weight = lower
end
if ARGV[6] then
  call('HSET', session_key(ARGV[1]), ARGV[3], field_of(number, delay, true, queue))
  call('HSET', base .. 'values', ARGV[3], ARGV[6])
  if call('ZRANK', queue_key(queue), entry) == 0 then tell_change(queue) end
end
return view(queue, number, weight, capacity_of(queue), own[4])
