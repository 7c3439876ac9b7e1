package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// jar returns the Java driver with a version of Redisson ("" for the version in pom.xml), and builds it with Maven if
// it is missing, or older than its sources.
func jar(version string, stderr io.Writer) (string, error) {
	dir, err := javaDir()
	if err != nil {
		return "", err
	}
	name, args := "redisson-driver", []string{"-q", "-B", "package"}
	if version != "" {
		name += "-" + version
		args = append(args, "-Dredisson.version="+version, "-Ddriver.name="+name)
	}
	path := filepath.Join(dir, "target", name+".jar")
	switch outdated, err := outdated(path, filepath.Join(dir, "pom.xml"), filepath.Join(dir, "src")); {
	case err != nil:
		return "", err
	case !outdated:
		return path, nil
	}
	fmt.Fprintf(stderr, "interop: builds %s …\n", path)
	maven := exec.Command("mvn", args...)
	maven.Dir = dir
	if out, err := maven.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the Java driver needs a JDK (17 or later) and Maven (3.8 or later): %w\n%s", err, out)
	}
	return path, nil
}

// javaDir finds the folder java/, from the root of the module and from its own.
func javaDir() (string, error) {
	for _, dir := range []string{"interop/java", "java"} {
		if _, err := os.Stat(filepath.Join(dir, "pom.xml")); err == nil {
			return filepath.Abs(dir)
		}
	}
	return "", errors.New("the Java driver is not found: run `go run ./interop` in the root of the module")
}

// outdated reports whether a file is missing, or older than anything in the sources.
func outdated(file string, sources ...string) (bool, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var newest time.Time
	for _, source := range sources {
		err := filepath.WalkDir(source, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return newest.After(info.ModTime()), nil
}
