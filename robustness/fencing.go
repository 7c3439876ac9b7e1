package main

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
)

// demonstrate shows what a lock alone cannot prevent: a holder that is stopped after it has
// checked its hold writes when the hold is no longer valid. Without fencing that loses an
// update; a store that checks the token refuses the write.
func demonstrate(binary string) ([]string, error) {
	var results []string
	for _, fenced := range []bool{false, true} {
		value, acknowledged, refused, err := faults.PausedHolder(binary, fenced)
		if err != nil {
			return nil, err
		}
		switch {
		case !fenced && value == acknowledged:
			return nil, fmt.Errorf("a stopped holder has lost no update, although the store does not check tokens: the demonstration shows nothing")
		case fenced && value != acknowledged:
			return nil, fmt.Errorf(
				"a stopped holder has lost an update, although the store checks tokens: "+
					"%d writes were acknowledged, and the value is %d",
				acknowledged, value)
		}
		with := "without fencing"
		if fenced {
			with = "with fencing"
		}
		results = append(results, fmt.Sprintf("paused holder, %s: %d updates were acknowledged, %d refused, and the value is %d",
			with, acknowledged, refused, value))
	}
	return results, nil
}
