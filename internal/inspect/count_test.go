package inspect

import "testing"

// A value that the scripts do not accept as a hold count makes the hash another application's.
func TestRead_RefusesWhatIsNoHoldCount(t *testing.T) {
	const owner = "00000057-6b1d-4a53-9a5e-2f4b7c1d0e88:57"
	for count, want := range map[string]bool{"1": true, "007": true, "123456789012345678": true, "-4": false, "4111111111111111123": false, "": false, "tiger": false} {
		if is := new(Lock).read([][2]string{{owner, count}}, 1); is != want {
			t.Errorf("a hash with the value %q is a lock: %v", count, is)
		}
	}
}
