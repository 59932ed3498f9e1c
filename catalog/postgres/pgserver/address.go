package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSocketPath keeps socket paths below the 104 bytes that macOS allows (Linux: 108).
const maxSocketPath = 100

// socketPort only names the socket file; nothing listens on it.
const socketPort = "5432"

// address is where a server listens: on a Unix socket in a private folder, or where no
// socket can be made on a loopback port with a password.
type address struct {
	socketDir string // empty: TCP
	temporary bool   // socketDir is ours outside of Config.Dir and is removed at the end
	port      string
	password  string
}

// newAddress finds a folder for the socket, else a free port.
func newAddress(ctx context.Context, cfg Config, acct *account) (address, error) {
	if err := removeRecordedSocketDir(cfg.Dir); err != nil {
		return address{}, err
	}
	if !cfg.TCP {
		if dir := filepath.Join(cfg.Dir, "run"); fits(dir) && acct.passes(cfg.Dir) && privateDir(dir, acct) == nil && takesSocket(ctx, dir) {
			return address{socketDir: dir, port: socketPort}, nil
		}
		for _, parent := range []string{os.TempDir(), "/tmp"} {
			if dir, err := recordedSocketDir(cfg.Dir, parent, acct); err == nil && fits(dir) && takesSocket(ctx, dir) {
				return address{socketDir: dir, temporary: true, port: socketPort}, nil
			}
			if err := removeRecordedSocketDir(cfg.Dir); err != nil {
				return address{}, err
			}
		}
	}
	return address{password: rand.Text()}, nil // the port is chosen at the last moment
}

// fits reports whether a socket in dir can be named: shortly enough, and without a comma,
// which separates hosts in a connection string however it is escaped.
func fits(dir string) bool {
	return len(dir)+len("/.s.PGSQL."+socketPort+".lock") <= maxSocketPath && !strings.Contains(dir, ",")
}

// privateDir makes dir, or takes an existing one, for the account alone. What an earlier
// server left in it goes: the caller knows that no server lives.
func privateDir(dir string, acct *account) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return acct.own(dir)
}

// socketRecord holds the path of a socket folder outside of Config.Dir, so that the next
// start removes what a killed process could not.
const socketRecord = "socket-folder"

// recordedSocketDir makes a private folder with a name that nobody can foresee.
func recordedSocketDir(dir, parent string, acct *account) (string, error) {
	socketDir, err := os.MkdirTemp(parent, "catalogd-pg-*") // mode 0700
	if err != nil {
		return "", err
	}
	err = os.WriteFile(filepath.Join(dir, socketRecord), []byte(socketDir+"\n"), 0o600)
	if err = errors.Join(err, acct.own(socketDir)); err != nil {
		return "", errors.Join(err, os.RemoveAll(socketDir))
	}
	if !acct.reaches(socketDir) {
		return "", fmt.Errorf("account %s cannot reach %s", acct, socketDir)
	}
	return socketDir, nil
}

// removeRecordedSocketDir removes the folder that the record names, files by name and then
// the empty folder: a forged record must not be able to remove anything else.
func removeRecordedSocketDir(dir string) error {
	record := filepath.Join(dir, socketRecord)
	text, err := os.ReadFile(record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	socketDir := strings.TrimSpace(string(text))
	if strings.HasPrefix(filepath.Base(socketDir), "catalogd-pg-") {
		for _, name := range []string{".s.PGSQL." + socketPort, ".s.PGSQL." + socketPort + ".lock", probeName} {
			_ = os.Remove(filepath.Join(socketDir, name)) // mostly absent
		}
		_ = os.Remove(socketDir) // gone already, or not ours to remove
	}
	return os.Remove(record)
}

const probeName = ".probe"

// takesSocket tries it out: some network and shared file systems have no sockets.
func takesSocket(ctx context.Context, dir string) bool {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", filepath.Join(dir, probeName))
	if err != nil {
		return false
	}
	return l.Close() == nil // which also removes the file
}

func freePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// settings are the server parameters that make it listen there and nowhere else.
func (a address) settings() map[string]string {
	if a.socketDir == "" {
		return map[string]string{"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "port": a.port}
	}
	return map[string]string{
		"listen_addresses": "",
		// The parameter is a list; quotes keep a space in the path.
		"unix_socket_directories": `"` + strings.ReplaceAll(a.socketDir, `"`, `""`) + `"`,
		"unix_socket_permissions": "0700",
		"port":                    a.port,
	}
}

// url is the connection string for a database. It holds the password of a TCP address.
func (a address) url(db string) *url.URL {
	u := &url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + db}
	q := url.Values{"sslmode": {"disable"}}
	if a.socketDir == "" {
		u.User = url.UserPassword(superuser, a.password)
		u.Host = net.JoinHostPort("127.0.0.1", a.port)
	} else {
		q.Set("host", a.socketDir)
		q.Set("port", a.port)
	}
	// Postgres clients take a plus sign for one: only %20 is a space to them. Encode writes
	// a plus sign of the path as %2B.
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u
}

// passwordSQL sets the password of a TCP address. rand.Text has no character to escape.
func (a address) passwordSQL() string {
	return "ALTER ROLE " + superuser + " PASSWORD '" + a.password + "'"
}

var _ fmt.Stringer = (*account)(nil)

// String names the account in messages.
func (a *account) String() string {
	if a == nil {
		return "user " + strconv.Itoa(os.Geteuid())
	}
	return "account " + a.name
}
