-- APPEND to a queue that nobody is in, as append.lua does it. It stands before what all scripts
-- have in common: to make those functions takes longer than all of this.
do
  local key, left = base .. 's:' .. ARGV[1], nil
  own = call('HMGET', key, '@epoch', '@lease', ARGV[3], '!' .. ARGV[3])
  own_ends = tonumber(call('ZSCORE', sessions, ARGV[1]) or 0)
  found = call('HMGET', queues, ARGV[4], '')
  left = own_ends - now
  if own[1] == ARGV[2] and left > 0 and left <= tonumber(own[2]) and not own[3] and
     not ARGV[12] and not found[1] and tonumber(ARGV[7]) <= tonumber(ARGV[6]) then
    local number = math.max(tonumber(found[2] or 0) + 1, least)
    local text = string.format('%.0f', number)
    call('ZADD', base .. 'q:' .. ARGV[4], text,
         ARGV[3] .. ARGV[1] .. ARGV[7] .. ARGV[10] .. string.format('%.0f', now))
    call('HSET', key, ARGV[3], text .. ARGV[11] .. ':' .. ARGV[4])
    call('HSET', queues, ARGV[4], ARGV[6] .. ' ' .. ARGV[5], '', text)
    return {'VIEW', number, 0, 0, 0}
  end
end
