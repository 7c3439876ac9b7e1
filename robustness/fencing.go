package main

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
)

// demonstrate shows what a lock alone cannot do: a holder that is stopped after it has
// looked whether it may trust its lock writes when it may not any more. Without fencing
// that loses an update; a store that looks at the token refuses the write.
func demonstrate(binary string) ([]string, error) {
	var said []string
	for _, fenced := range []bool{false, true} {
		value, acknowledged, refused, err := faults.PausedHolder(binary, fenced)
		if err != nil {
			return nil, err
		}
		switch {
		case !fenced && value == acknowledged:
			return nil, fmt.Errorf("a holder that was stopped has lost no update, although the store does not look at tokens: the demonstration shows nothing")
		case fenced && value != acknowledged:
			return nil, fmt.Errorf("a holder that was stopped has lost an update, although the store looks at tokens: %d writes were acknowledged, and the value is %d", acknowledged, value)
		}
		with := "without fencing"
		if fenced {
			with = "with fencing"
		}
		said = append(said, fmt.Sprintf("paused holder, %s: %d updates were acknowledged, %d refused, and the value is %d", with, acknowledged, refused, value))
	}
	return said, nil
}
