package redisio

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/rueidis"
)

// errPasswordFile is wrapped by the errors about the option password_file, which say what is wrong with the file. They
// do not quote the content of the file.
var errPasswordFile = errors.New("option password_file")

// usePasswordFile makes a client read its password from a file for each connection, so that the password can be
// replaced while the program runs.
func usePasswordFile(options *rueidis.ClientOption, file string) error {
	switch {
	case file == "":
		return fmt.Errorf("%w: it names no file", errPasswordFile)
	case options.Password != "":
		return fmt.Errorf("%w: the URL has a password, in addition to the file %s", errPasswordFile, file)
	}
	user := options.Username
	read := func(rueidis.AuthCredentialsContext) (c rueidis.AuthCredentials, err error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, &Error{Transient: true, Err: fmt.Errorf("%w: %w", errPasswordFile, err)} // nothing was sent
		}
		c = rueidis.AuthCredentials{Username: user, Password: strings.TrimRight(string(text), "\r\n")}
		if c.Password == "" {
			return c, &Error{Transient: true, Err: fmt.Errorf("%w: %s is empty", errPasswordFile, file)}
		}
		return c, nil
	}
	if _, err := read(rueidis.AuthCredentialsContext{}); err != nil {
		return err
	}
	options.AuthCredentialsFn = read
	return nil
}
