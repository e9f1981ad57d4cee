-- SPDX-License-Identifier: Apache-2.0
-- How short ways begin (*_short.lua), between head.lua and their own text: the session, and its
-- ARGV[3], a ticket.
local key, left, alive = base .. 's:' .. ARGV[1], nil, false -- and of this epoch
own = call('HMGET', key, '@epoch', '@lease', ARGV[3], '!' .. ARGV[3])
own_ends = tonumber(call('ZSCORE', sessions, ARGV[1]) or 0)
left = own_ends - now
alive = own[1] == ARGV[2] and left > 0 and left <= tonumber(own[2])
