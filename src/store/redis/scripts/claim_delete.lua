-- SPDX-License-Identifier: Apache-2.0
-- Compare and delete: KEYS[1] the lock, ARGV[1] the token. Programs of ours that wait listen
-- on ARGV[2].
if redis.call('get', KEYS[1]) == ARGV[1] then
  redis.call('del', KEYS[1])
  redis.call('publish', ARGV[2], KEYS[1])
  return 1
end
return 0
