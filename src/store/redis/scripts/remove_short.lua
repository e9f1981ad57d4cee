-- SPDX-License-Identifier: Apache-2.0
-- REMOVE as remove.lua does it, of a ticket without a value that is the only one in its queue, or
-- holds a mutex that somebody alive is the next for. It stands before what all scripts have in
-- common, as in append_short.lua.
do
  if alive and own[3] then
    local number, queue = string.match(own[3], '^(%d+)~?%d*:(.*)$')
    local line = base .. 'q:' .. (queue or '')
    local front = queue and call('ZRANGE', line, 0, 2)
    if not queue or string.sub(front[1] or '', 1, 32) ~= ARGV[3] then
      queue = nil
    elseif not front[2] then
      call('ZREM', line, front[1])
      call('HDEL', key, ARGV[3], '!' .. ARGV[3])
      call('HDEL', queues, queue)
      return {'REMOVED'}
    elseif string.sub(call('HGET', queues, queue) or '', 1, 2) == '1 ' then
      local ticket, heir = string.sub(front[2], 1, 32), string.sub(front[2], 33, 64)
      local its = call('HMGET', base .. 's:' .. heir, '@lease', '@channel', ticket, '@key')
      left = tonumber(call('ZSCORE', sessions, heir) or 0) - now
      number = string.match(its[3] or '', '^%d+')
      if number and its[2] and left > 0 and left <= tonumber(its[1] or 0) then
        call('ZREM', line, front[1])
        call('HDEL', key, ARGV[3], '!' .. ARGV[3])
        local what = number .. (front[3] and ' 0 1' or ' 0 0')
        call('PUBLISH', its[2], heir .. ' ' .. signed(its[4], ticket, what))
        return {'REMOVED'}
      end
    end
  end
end
