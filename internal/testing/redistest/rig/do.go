package rig

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Do runs a command on a new connection to a server, and returns its reply: in RESP2, without a login, in database 0.
// An error reply is an error.
func Do(addr string, args ...string) (Value, error) {
	v, err := send(addr, Request(args...))
	if err == nil && v.Kind == '-' {
		err = errors.New(v.Str)
	}
	return v, err
}

// Request is a command in the Redis protocol.
func Request(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

func send(addr string, request []byte) (Value, error) {
	conn, err := net.DialTimeout("tcp", addr, Limit)
	if err != nil {
		return Value{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Limit))
	if _, err := conn.Write(request); err != nil {
		return Value{}, err
	}
	f, err := NewReader(conn).Next()
	return f.Value, err
}
