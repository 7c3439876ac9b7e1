//go:build race

package grains

func init() { raced = true }
