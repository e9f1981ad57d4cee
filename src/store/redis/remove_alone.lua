-- REMOVE of the only ticket in its queue, if it has no value, as remove.lua does it; it stands
-- before what all scripts have in common, as in append_alone.lua.
do
  local call, base = redis.call, string.sub(KEYS[1], 1, -9)
  local clock, key = call('TIME'), base .. 's:' .. ARGV[1]
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local own = call('HMGET', key, '@epoch', '@lease', ARGV[3])
  local left = tonumber(call('ZSCORE', KEYS[1], ARGV[1]) or 0) - now
  if own[1] == ARGV[2] and left > 0 and left <= tonumber(own[2]) and own[3] then
    local number, queue = string.match(own[3], '^(%d+)~?%d*:(.*)$')
    local tickets = base .. 'q:' .. (queue or '')
    if queue and call('ZCARD', tickets) == 1 and
       call('ZREMRANGEBYSCORE', tickets, number, number) == 1 then
      call('HDEL', key, ARGV[3], '!' .. ARGV[3])
      call('HDEL', base .. 'queues', queue)
      return {'REMOVED'}
    end
  end
end
