package main

import (
	"io"
	"net"
	"testing"
	"time"
)

// Packets come back in order and delayed, and packets sent at the same time do not wait for
// each other.
func TestDelayed(t *testing.T) {
	const delay, packets, size = 50 * time.Millisecond, 40, 1000
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	addr, stop, err := delayed(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	go func() {
		for i := range packets {
			packet := make([]byte, size)
			packet[0] = byte(i)
			_, _ = conn.Write(packet)
			time.Sleep(time.Millisecond)
		}
	}()
	for i := range packets {
		packet := make([]byte, size)
		if _, err := io.ReadFull(conn, packet); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); i == 0 && took < 2*delay {
			t.Errorf("there and back in %v", took)
		}
		if packet[0] != byte(i) {
			t.Fatalf("packet %d is %d", i, packet[0])
		}
	}
	if took := time.Since(start); took > packets*delay {
		t.Errorf("%d packets took %v, as if each waited for the one before", packets, took)
	}
}
