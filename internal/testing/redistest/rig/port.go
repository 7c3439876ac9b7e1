package rig

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// These ports, and the ports of a cluster's bus 10000 above, are below the range from which the kernel takes the local
// ports of outgoing connections. In that range a client that keeps dialling a killed server would sooner or later be
// given the server's own port, and connect to itself.
const firstPort, lastPort = 10000, 22767

// freePort finds a port on which nothing listens.
func freePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort(Host, strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port found")
}

// onFreePort launches a process on a free port. Another process may take the port between
// the check and the launch, so several ports are tried.
func onFreePort(launch func(port int) error) (err error) {
	for range 10 {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err = launch(port); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return errPortTaken
}
