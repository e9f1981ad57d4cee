-- REFRESH and LIGHTEN. ARGV[3] ticket, 4 queue, 5 the lower weight (0: as it is).
-- {VIEW, ...}, {GONE}, {LOST}, {STALE}
local no = refused(ARGV[1], tonumber(ARGV[2]))
if no then return no end
local field = redis.call('HGET', session_key(ARGV[1]), ARGV[3])
if not field then return {'GONE'} end
local queue, number, entry = entry_at(field)
if not entry or queue ~= ARGV[4] then return {'GONE'} end
local weight, lower = weight_in(entry), tonumber(ARGV[5])
if lower > 0 and lower < weight then
  redis.call('ZREM', queue_key(queue), entry)
  redis.call('ZADD', queue_key(queue), number,
             entry_of(ARGV[3], ARGV[1], lower, since_in(entry)))
  depart(queue, number, weight - lower)
  weight = lower
end
return view(queue, number, weight, capacity_of(queue))
