-- SPDX-License-Identifier: Apache-2.0
-- APPEND. ARGV[3] ticket, 4 queue, 5 kind, 6 capacity, 7 weight, 8 "1" for a try,
-- 9 how many may wait (0: any number), 10 ":", or "+" if it lingers, 11 "", or "~" and how
-- long it stays after a crash, 12 its value, if it has one.
-- {VIEW, ...}, {BLOCKED}, {FULL}, {OTHER, what the queue is}, {LOST}, {STALE}
local no, own = refused(ARGV[1], tonumber(ARGV[2]), ARGV[3], '!' .. ARGV[3])
if no then return no end
local session, ticket, queue, kind = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local capacity, weight = tonumber(ARGV[6]), tonumber(ARGV[7])
local try, most = ARGV[8] == '1', tonumber(ARGV[9])

if own[3] then
  local known, number, entry = entry_at(own[3])
  if entry then return view(known, number, weight_in(entry), capacity, own[4]) end
end

local function waiting()
  local ahead, all = 0, 0
  each(queue, function(entry)
    if all > 0 or ahead + weight_in(entry) > capacity then all = all + 1 end
    ahead = ahead + weight_in(entry)
    return all >= most
  end)
  return all
end

local described = text_of(capacity) .. ' ' .. kind
local is = found[1]
if is and is ~= described then
  bury_dead_in(queue)
  is = call('HGET', queues, queue)
  if is and is ~= described then return {'OTHER', is} end
end

local ahead, soonest, first = look(queue, math.huge, weight, capacity)
if ahead + weight > capacity then
  if most > 0 and not try and waiting() >= most then
    bury_dead_in(queue)
    ahead, soonest, first = look(queue, math.huge, weight, capacity)
  end
  if ahead + weight > capacity and (try or (most > 0 and waiting() >= most)) then
    settle()
    return {try and 'BLOCKED' or 'FULL'}
  end
end
settle()

local number = number_from(tonumber(found[2] or 0) + 1)
call('ZADD', queue_key(queue), number, entry_of(ticket, session, weight, ARGV[10], text_of(now)))
call('HSET', session_key(session), ticket,
           field_of(number, ARGV[11], ARGV[12], queue))
call('HSET', queues, queue, described, '', text_of(number))
if ARGV[12] then
  call('HSET', base .. 'values', ticket, ARGV[12])
  if ahead == 0 then tell_change(queue) end
end
if soonest == 0 then return {'VIEW', number, ahead, 0, 0} end
if mark_in(first[2]) == '+' then push(first[2], first[1], 0, true) end
return {'VIEW', number, ahead, 0, soonest, 0, place_of(queue, number)}
