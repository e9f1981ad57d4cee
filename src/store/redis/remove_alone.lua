-- REMOVE of the only ticket in its queue, if it has no value, as remove.lua does it; it stands
-- before what all scripts have in common, as in append_alone.lua.
do
  local key, left = base .. 's:' .. ARGV[1], nil
  own = call('HMGET', key, '@epoch', '@lease', ARGV[3])
  own_ends = tonumber(call('ZSCORE', sessions, ARGV[1]) or 0)
  left = own_ends - now
  if own[1] == ARGV[2] and left > 0 and left <= tonumber(own[2]) and own[3] then
    local number, queue = string.match(own[3], '^(%d+)~?%d*:(.*)$')
    local tickets = base .. 'q:' .. (queue or '')
    if queue and call('ZCARD', tickets) == 1 and
       call('ZREMRANGEBYSCORE', tickets, number, number) == 1 then
      call('HDEL', key, ARGV[3], '!' .. ARGV[3])
      call('HDEL', queues, queue)
      return {'REMOVED'}
    end
  end
end
