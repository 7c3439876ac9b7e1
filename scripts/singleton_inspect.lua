-- Reads where the instance of a singleton is, and what the last instances had begun when they stopped.
--
-- KEYS[1]  the whereabouts of the singleton, a hash
-- ARGV     none
--
-- Reply: {at, left}; each is "" if it is missing

--- include common/whereabouts.lua

return {read_whereabouts(KEYS[1])}
