package redisio

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/rueidis"
)

// usePasswordFile makes a client read its password from a file for each connection, so that the password can be
// replaced while the program runs.
func usePasswordFile(options *rueidis.ClientOption, file string) error {
	if options.Password != "" {
		return errors.New("option password_file: the URL has a password, too")
	}
	user := options.Username
	read := func(rueidis.AuthCredentialsContext) (c rueidis.AuthCredentials, err error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, &Error{Transient: true, Err: fmt.Errorf("option password_file: %w", err)} // nothing was sent
		}
		c = rueidis.AuthCredentials{Username: user, Password: strings.TrimRight(string(text), "\r\n")}
		if c.Password == "" {
			return c, &Error{Transient: true, Err: fmt.Errorf("option password_file: %s is empty", file)}
		}
		return c, nil
	}
	if _, err := read(rueidis.AuthCredentialsContext{}); err != nil {
		return err
	}
	options.AuthCredentialsFn = read
	return nil
}
