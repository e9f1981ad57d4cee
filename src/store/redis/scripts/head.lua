-- SPDX-License-Identifier: Apache-2.0
-- The beginning of all scripts of the redis: store except those of claims: the names of keys, the
-- time, and what a short form (short.lua, *_short.lua) has read, which is not read again.
-- common.lua has the rest that they share, and explains the keys.
--
-- KEYS[1] is the key of the sessions. Behind it is every other key that can be named before the
-- script runs (command.c). The other keys are the sessions of other tickets, the queues of a dead
-- session's tickets, and a lock's own key, which may be in another slot of a cluster.
-- ARGV[1] is the session, ARGV[2] the epoch.
local call = redis.call
local sessions = KEYS[1]
local base = string.sub(sessions, 1, -9)
local queues = base .. 'queues'
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local least = math.floor((clock[1] - 1577836800) * 128000 + clock[2] * 0.128) -- of new numbers
local own, own_ends -- fields of the session, and when its lease ends
local found         -- of `queues`: what the queue is, and the newest number

-- A message about a ticket with its signature, which shows that a script sent it: see sign.h.
-- Sessions of earlier versions have no key, so their messages have no signature.
local function signed(key, ticket, what)
  local text = ticket .. ' ' .. what
  return key and text .. ' ' .. string.sub(redis.sha1hex(key .. text), 1, 16) or text
end
