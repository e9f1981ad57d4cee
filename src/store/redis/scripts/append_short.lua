-- SPDX-License-Identifier: Apache-2.0
-- APPEND as append.lua does it, to a queue that nobody is in, or of whose mutex somebody alive is
-- first. It stands before what all scripts have in common: to make those functions takes a tenth of
-- the longer way, and calls of this server most of the rest.
do
  local ahead, soonest, place
  found = call('HMGET', queues, ARGV[4], '')
  if alive and not own[3] and not ARGV[12] and tonumber(ARGV[7]) <= tonumber(ARGV[6]) then
    local described = ARGV[6] .. ' ' .. ARGV[5]
    if not found[1] then
      ahead = 0
    elseif found[1] == described and ARGV[6] == '1' and ARGV[8] == '0' and ARGV[9] == '0' then
      local first = call('ZRANGE', base .. 'q:' .. ARGV[4], 0, 0)[1] or ''
      local session = string.sub(first, 33, 64)
      soonest = tonumber(call('ZSCORE', sessions, session) or 0) - now
      if soonest > 0 and string.byte(session) ~= 126 and not string.find(first, '+', 65, true) and
         soonest <= tonumber(call('HGET', base .. 's:' .. session, '@lease') or 0) then
        ahead, place = 1, call('ZCARD', base .. 'q:' .. ARGV[4])
      end
    end
    if ahead then
      local number = math.max(tonumber(found[2] or 0) + 1, least)
      local text = string.format('%.0f', number)
      call('ZADD', base .. 'q:' .. ARGV[4], text,
           ARGV[3] .. ARGV[1] .. ARGV[7] .. ARGV[10] .. string.format('%.0f', now))
      call('HSET', key, ARGV[3], text .. ARGV[11] .. ':' .. ARGV[4])
      call('HSET', queues, ARGV[4], described, '', text)
      if ahead == 0 then return {'VIEW', number, 0, 0, 0} end
      return {'VIEW', number, ahead, 0, soonest, 0, place}
    end
  end
end
