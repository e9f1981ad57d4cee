-- SPDX-License-Identifier: Apache-2.0
-- The common part of all scripts of the redis: store: each is head.lua, this text and its own.
--
-- Keys, all of one hash slot, `base` being {NAMESPACE/}:
--   sessions     sorted set: session by the time when its lease ends
--   s:SESSION    hash: @epoch, @lease, @channel, @key, @label, and a field for each ticket,
--                "NUMBER:QUEUE", or "NUMBER=QUEUE" if it has a value, with "~DELAY" behind the
--                number if the ticket stays for that long after a crash; and !TICKET: how often
--                the ticket has been requested
--   queues       hash: queue to "CAPACITY KIND", while it has tickets; and "" to the newest
--                number given out, which never expires
--   q:QUEUE      sorted set: "TICKET SESSION WEIGHT:SINCE" (no spaces) by NUMBER; a "+" for the ":"
--                if the ticket's client wants to learn that others queue behind it
--   values       hash: ticket to its value, if it has one
--   k:NAME       hash: version, fence, writer and value of a cell; without the value it
--                has been deleted, but is remembered
--   fence        the newest number of a claim; never expires
--   n:NAME       hash: token, number, session and ticket of the holder of a claim, and how often
--                the claim has been requested; expires
-- Times are this server's, in milliseconds. No other key expires. Every script treats a session
-- whose lease has ended as dead, and the first script that finds one buries it. A detached ticket
-- belongs to the session `nobody`, which is not among the sessions and does not die. A ticket that
-- its dead holder leaves behind for a while belongs to a session of its own, "~NUMBER", whose
-- lease is that while.
--
-- The scripts only add up weights. The client decides from the weight ahead whether it holds. Where
-- a script compares a weight with the capacity, it refuses or wakes.
--
-- A client that lost its connection may have sent commands on it that the server has not read
-- yet. Each connection of a client has a higher epoch, and a session takes no command of
-- a lower one than it has seen.
-- a lower one than it has seen.
local nobody = '00000000000000000000000000000000'

local function queue_key(queue) return base .. 'q:' .. queue end
local function session_key(session) return base .. 's:' .. session end
local function text_of(number) return string.format('%.0f', number) end

local function entry_of(ticket, session, weight, mark, since)
  return ticket .. session .. text_of(weight) .. mark .. since
end
local function ticket_in(entry) return string.sub(entry, 1, 32) end
local function session_in(entry) return string.sub(entry, 33, 64) end
local function weight_in(entry) return tonumber(string.match(entry, '^%d+', 65)) end
local function since_in(entry) return string.match(entry, '%d+$') end
local function mark_in(entry) return string.match(entry, '[:+]', 65) end
local function left_behind(session) return string.byte(session) == 126 end

-- Shows a queue's entries and their numbers in order, until `visit` returns true.
local function each(queue, visit)
  local key, at, step = queue_key(queue), 0, 4
  while true do
    local part = call('ZRANGE', key, at, at + step - 1, 'WITHSCORES')
    for i = 1, #part, 2 do
      if visit(part[i], tonumber(part[i + 1])) then return end
    end
    if #part < 2 * step then return end
    at, step = at + step, 64
  end
end

-- How long a session's lease still lasts; 0 or less: it is dead. If the clock has been
-- set back, a session ends after its lease all the same.
local function left_of(session)
  if session == nobody then return 3600000 end
  local ends = tonumber(call('ZSCORE', sessions, session) or 0)
  if ends <= now then return 0 end
  local lease = tonumber(call('HGET', session_key(session), '@lease') or 0)
  if ends > now + lease then
    ends = now + lease
    call('ZADD', sessions, ends, session)
  end
  return ends - now
end

-- A number that is not behind the newest, nor behind the clock: so numbers rise also if they are
-- forgotten, unless the clock has been set back as well. The clock counts 1/128 ms, which is less
-- than a script takes, so no number that was forgotten was ahead of it.
local function number_from(newest)
  return math.max(newest, least)
end

-- Departures: the lowest number and all the weight of what has left each queue.
local departed = {}

local function depart(queue, number, weight)
  local known = departed[queue]
  if known then
    known.number = math.min(known.number, number)
    known.weight = known.weight + weight
  else
    departed[queue] = {number = number, weight = weight}
  end
end

-- A ticket's entry by the field of its session's hash: queue, number, entry or nil, whether it
-- has a value, and its delay.
local function entry_at(field)
  local number, delay, mark, queue = string.match(field, '^(%d+)(~?%d*)([:=])(.*)$')
  local found = call('ZRANGEBYSCORE', queue_key(queue), number, number)
  return queue, tonumber(number), found[1], mark == '=', delay
end
local function field_of(number, delay, valued, queue)
  return text_of(number) .. delay .. (valued and '=' or ':') .. queue
end

-- `valued`: it has a value, or may have one.
local function take_out(queue, number, entry, valued)
  if call('ZREM', queue_key(queue), entry) == 0 then return end
  depart(queue, number, weight_in(entry))
  if valued and call('HDEL', base .. 'values', ticket_in(entry)) == 1 then
    departed[queue].valued = true
  end
end
local function take_out_field(field)
  local queue, number, entry, valued = entry_at(field)
  if entry then take_out(queue, number, entry, valued) end
end

-- Tells the observers of a queue that its first ticket, or that ticket's value, has changed.
local function tell_change(queue)
  call('PUBLISH', base .. 'e:' .. queue, queue)
end

local function capacity_of(queue)
  return tonumber(string.match(call('HGET', queues, queue) or '0', '^%d+'))
end

-- The weight ahead of a place, until it is too much for anyone: that, and of whom, as {number,
-- entry}.
local function count(queue, number, capacity)
  local ahead, whose = 0, {}
  each(queue, function(entry, other)
    if other >= number then return true end
    ahead = ahead + weight_in(entry)
    whose[#whose + 1] = {other, entry}
    return ahead > capacity
  end)
  return ahead, whose
end

-- Sends a ticket's session a message about the ticket.
local function tell(entry, what)
  local session = session_in(entry)
  local its = call('HMGET', session_key(session), '@channel', '@key')
  if its[1] then call('PUBLISH', its[1], session .. ' ' .. signed(its[2], ticket_in(entry), what)) end
end

-- Tells a ticket's session its view, which lets it in.
local function push(entry, number, ahead, behind)
  tell(entry, text_of(number) .. ' ' .. text_of(ahead) .. (behind and ' 1' or ' 0'))
end

-- Gives a ticket to a session of its own that lasts until `ends`; waiters behind it look again.
local function leave_behind(field, ends, label)
  local queue, number, entry, valued, delay = entry_at(field)
  local session = string.format('~%031.0f', number)
  call('ZREM', queue_key(queue), entry)
  call('ZADD', queue_key(queue), number,
       entry_of(ticket_in(entry), session, weight_in(entry), ':', since_in(entry)))
  call('HSET', session_key(session), '@lease', text_of(tonumber(string.sub(delay, 2)) + 1),
       '@label', label or '', ticket_in(entry), field_of(number, '', valued, queue))
  call('ZADD', sessions, ends, session)
  each(queue, function(other, place)
    if place > number then tell(other, 'look') end
    return false
  end)
end

-- When what a session that died has of this field may go; 0: at once.
local function stays_until(field, died)
  if not string.find(field, '^%d+~') then return 0 end
  local queue, number, entry, _, delay = entry_at(field)
  local capacity = capacity_of(queue)
  if not entry or count(queue, number, capacity) + weight_in(entry) > capacity then return 0 end
  return died + tonumber(string.sub(delay, 2)) + 1 -- times are rounded down
end

-- Ends a session and all its tickets; but for those that stay, unless it ends well.
local function bury(session, well)
  local fields = call('HGETALL', session_key(session))
  local died, label, ends = tonumber(call('ZSCORE', sessions, session) or now), nil, {}
  for i = 1, #fields, 2 do
    if fields[i] == '@label' then label = fields[i + 1] end
    if not well and not string.find(fields[i], '^[@!]') then
      ends[i] = stays_until(fields[i + 1], math.min(died, now))
    end
  end
  call('ZREM', sessions, session)
  call('DEL', session_key(session))
  for i = 1, #fields, 2 do
    if (ends[i] or 0) > now then
      leave_behind(fields[i + 1], ends[i], label)
    elseif not string.find(fields[i], '^[@!]') then
      take_out_field(fields[i + 1])
    end
  end
end

-- Ends the sessions of these tickets, {number, entry}. A ticket that its session has forgotten,
-- since somebody deleted that or the server dropped it, goes too.
local function bury_all(queue, dead)
  for _, one in ipairs(dead) do
    bury(session_in(one[2]))
    take_out(queue, one[1], one[2], true)
  end
end

-- Tells those whom the departures from a queue have let in; buries the dead on the way.
local function wake(queue, known)
  local capacity, ahead, dead, fit, first = nil, 0, {}, {}, nil
  each(queue, function(entry, number)
    capacity = capacity or capacity_of(queue)
    first = first or number
    if ahead >= capacity then -- nobody else can be let in
      if #fit > 0 then fit[#fit].behind = true end
      return true
    end
    if left_of(session_in(entry)) <= 0 then
      dead[#dead + 1] = {number, entry}
      return false
    end
    if #fit > 0 then fit[#fit].behind = true end
    local weight = weight_in(entry)
    if ahead + weight > capacity then return true end
    if number > known.number and ahead + weight + known.weight > capacity then
      fit[#fit + 1] = {entry = entry, number = number, ahead = ahead}
    end
    ahead = ahead + weight
    return false
  end)
  if #dead > 0 then -- and what they leave behind is in the way
    bury_all(queue, dead)
    depart(queue, known.number, known.weight)
    departed[queue].valued = departed[queue].valued or known.valued
    return
  end
  if not first then call('HDEL', queues, queue) end
  if known.valued and (first or math.huge) > known.number then tell_change(queue) end
  for _, one in ipairs(fit) do push(one.entry, one.number, one.ahead, one.behind) end
end

-- To be called once all is done.
local function settle()
  local queue, known = next(departed)
  while queue do
    departed[queue] = nil
    wake(queue, known)
    queue, known = next(departed)
  end
end

local function bury_dead_in(queue)
  local dead = {}
  each(queue, function(entry, number)
    if left_of(session_in(entry)) <= 0 then dead[#dead + 1] = {number, entry} end
    return false
  end)
  bury_all(queue, dead)
  settle()
end

-- Whether commands of this session may be done: what to answer if not; or nil, and a list whose
-- third element and on are these fields of its.
local function refused(session, epoch, ...)
  own = own or call('HMGET', session_key(session), '@epoch', '@lease', ...)
  local ends = own_ends or tonumber(call('ZSCORE', sessions, session) or 0)
  if ends > now + tonumber(own[2] or 0) then ends = now + left_of(session) end
  if ends <= now then
    bury(session)
    settle()
    return {'LOST'}
  end
  local seen = tonumber(own[1] or 0)
  if epoch < seen then return {'STALE'} end
  if epoch > seen then call('HSET', session_key(session), '@epoch', epoch) end
  return nil, own
end

-- The weight ahead of a place without the dead; and if it is too much, how soon one of those in the
-- way may be dead, and the first ticket, as {number, entry}.
local function look(queue, number, weight, capacity)
  while true do
    local ahead, whose = count(queue, number, capacity)
    if ahead + weight <= capacity then return ahead, 0 end
    local soonest, dead = 3600000, {}
    for _, one in ipairs(whose) do
      local session = session_in(one[2])
      local left = left_of(session)
      if left <= 0 then
        dead[#dead + 1] = one
      elseif left_behind(session) then
        left = math.max(left - 2, 1) -- so that the client looks just before its end, not after
      end
      soonest = math.min(soonest, left)
    end
    if #dead == 0 then return ahead, soonest, whose[1] end
    bury_all(queue, dead)
  end
end

-- How many tickets are before one that waits.
local function place_of(queue, number)
  return call('ZCOUNT', queue_key(queue), '-inf', '(' .. text_of(number))
end

-- The view of a ticket, as the answer: number, weight ahead, others behind, soonest death, how
-- often it has been requested, and its place if it waits.
local function view(queue, number, weight, capacity, asked)
  local ahead, soonest = look(queue, number, weight, capacity)
  local behind = call('ZCOUNT', queue_key(queue), '(' .. text_of(number), '+inf')
  settle()
  return {'VIEW', number, ahead, behind > 0 and 1 or 0, soonest, tonumber(asked or 0),
          soonest > 0 and place_of(queue, number) or 0}
end
