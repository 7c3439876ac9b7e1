package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// readFrame reads one frame of the Redis protocol, of any type.
func readFrame(from *bufio.Reader) ([]byte, error) {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	length := func() (int, error) { return strconv.Atoi(string(bytes.TrimSpace(line[1:]))) }
	switch line[0] {
	case '$', '=', '!':
		n, err := length()
		if err != nil || n < 0 {
			return line, err
		}
		rest := make([]byte, n+2)
		if _, err := io.ReadFull(from, rest); err != nil {
			return nil, err
		}
		return append(line, rest...), nil
	case '*', '~', '>', '%', '|':
		n, err := length()
		if err != nil {
			return nil, err
		}
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		for range n {
			element, err := readFrame(from)
			if err != nil {
				return nil, err
			}
			line = append(line, element...)
		}
		return line, nil
	case '+', '-', ':', '_', ',', '#', '(':
		return line, nil
	}
	return nil, fmt.Errorf("not the Redis protocol: %q", line)
}

// isMessage reports whether a frame is a published message.
func isMessage(frame []byte) bool {
	return bytes.HasPrefix(frame, []byte(">3\r\n$7\r\nmessage\r\n"))
}

// redis runs one command on a new connection, and returns the lines of the reply.
func redis(addr string, wait time.Duration, args ...string) ([]string, error) {
	conn, err := net.DialTimeout("tcp", addr, wait)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	var request bytes.Buffer
	fmt.Fprintf(&request, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := conn.Write(request.Bytes()); err != nil {
		return nil, err
	}
	reply, err := readFrame(bufio.NewReader(conn))
	if err != nil {
		return nil, err
	}
	if reply[0] == '-' {
		return nil, errors.New(string(bytes.TrimSpace(reply[1:])))
	}
	var lines []string
	for _, line := range bytes.Split(bytes.TrimSpace(reply), []byte("\r\n")) {
		lines = append(lines, string(line))
	}
	return lines, nil
}
