-- Adds permits: those that are released, or more of them. A negative number takes permits away,
-- more than are free if need be.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  "1": only if there is such a semaphore; else it is made
-- ARGV[4]  the semaphore's channel; the free permits are published, unless they are negative
--
-- Reply: {1: added, 0: there is no such semaphore; the permits that are free then}
return once(KEYS[2], ARGV[1], function()
  return add(KEYS[1], ARGV[2], ARGV[3], ARGV[4])
end)
