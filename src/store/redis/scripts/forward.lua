-- SPDX-License-Identifier: Apache-2.0
-- Brings the newest numbers of tickets and of claims to ARGV[3], if they are behind it: a server
-- that has become the master may have a clock that is behind that of the last one.
-- {FORWARD}
local number, key = tonumber(ARGV[3]), base .. 'fence'
if number > tonumber(call('HGET', queues, '') or 0) then call('HSET', queues, '', ARGV[3]) end
if number > tonumber(call('GET', key) or 0) then call('SET', key, ARGV[3]) end
return {'FORWARD'}
