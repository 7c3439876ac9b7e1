// Package process starts the other processes of an example: the same program once more.
package process

import (
	"context"
	"flag"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/alicebob/miniredis/v2"
)

// Main runs tour, or in a process that Start has started, work. terminated ends at SIGTERM, and with the process that
// runs the tour.
func Main(tour func(url string) error, work func(terminated context.Context, url, name string) error) {
	log.SetFlags(0)
	url := flag.String("redis", "", "`URL` of a Redis; without it, there is one inside this program")
	name := flag.String("process", "", "be the other process of this `name`")
	flag.Parse()
	if *name != "" {
		terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		Check(work(terminated, *url, *name))
		return
	}
	if *url == "" {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true) // leases end by themselves
		Check(server.Start())
		defer server.Close()
		*url = "redis://" + server.Addr() + "?protocol=2"
	}
	Check(tour(*url))
}

// Process is another process.
type Process struct{ *exec.Cmd }

// Start starts a process, and waits until it has printed something.
func Start(url, name string) (*Process, error) {
	p := &Process{exec.Command(os.Args[0], "-redis", url, "-process", name)}
	p.Stderr = os.Stderr
	if _, err := p.StdinPipe(); err != nil { // which ends with this process
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	_, err = out.Read(make([]byte, 100))
	return p, err
}

// End ends a process in good order.
func (p *Process) End() error {
	if p.ProcessState != nil {
		return nil // it has ended
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil && p.ProcessState.ExitCode() >= 0 {
		return err
	}
	return nil
}

// Check ends the program on an error that an example does not handle.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
