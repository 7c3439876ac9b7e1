package machine

import (
	"encoding/hex"
)

// PermitID is the id of a permit in Redis. Its first half is its System's, the other is random.
type PermitID [16]byte

// String returns the id as Redisson spells it: 32 hexadecimal digits.
func (id PermitID) String() string { return hex.EncodeToString(id[:]) }
