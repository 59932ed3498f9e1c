package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system user that the server runs as. A nil account means: as
// ourselves.
type account struct {
	name     string
	uid, gid uint32
}

// accountFor chooses who runs the server for a data folder, which need not exist yet.
// PostgreSQL insists that its user owns the folder, so the owner of an existing cluster
// is kept.
func accountFor(dataDir string) (*account, error) {
	owner, exists := ownerOf(dataDir)
	if euid := os.Geteuid(); euid != 0 {
		if exists && owner.uid != uint32(euid) { //nolint:gosec // a user id fits
			return nil, fmt.Errorf("%s belongs to user %s: start as that user or as root, or choose another folder", dataDir, owner.name)
		}
		return nil, nil //nolint:nilnil // nil is the documented "as ourselves"
	}
	if exists && owner.uid != 0 {
		return owner, nil
	}
	for _, name := range []string{"postgres", "nobody", "daemon"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		if acct, err := parseAccount(u); err == nil && acct.uid != 0 {
			return acct, nil
		}
	}
	return nil, errors.New("PostgreSQL cannot run as root, and there is no account postgres, nobody or daemon to run it as: " +
		"start as an ordinary user, or add one (`useradd --system postgres`)")
}

func ownerOf(path string) (*account, bool) {
	info, err := os.Stat(path)
	if path == "" || err != nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, false
	}
	acct := &account{name: strconv.Itoa(int(st.Uid)), uid: st.Uid, gid: st.Gid}
	if u, err := user.LookupId(acct.name); err == nil {
		acct.name = u.Username
	}
	return acct, true
}

func parseAccount(u *user.User) (*account, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, errors.Join(err1, err2)
}

// credential is what makes a child process run as the account.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// reaches reports whether the account may use path: read and execute it, and pass
// through every folder above.
func (a *account) reaches(path string) bool { return a.may(0o5, path) && a.passes(filepath.Dir(path)) }

// passes reports whether the account may pass through the folder dir and all above it.
func (a *account) passes(dir string) bool {
	for ; a.may(0o1, dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return true
		}
	}
	return false
}

// may looks at mode bits only; where an ACL grants more, a false answer costs a detour,
// not a failure.
func (a *account) may(need fs.FileMode, path string) bool {
	if a == nil {
		return true
	}
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	mode := info.Mode().Perm()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case st.Uid == a.uid:
			mode >>= 6
		case st.Gid == a.gid:
			mode >>= 3
		}
	}
	return mode&need == need
}

// own gives path to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// ownTree gives path and everything below it to the account. Links are not followed.
func (a *account) ownTree(path string) error {
	if a == nil {
		return nil
	}
	return filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(a.uid), int(a.gid)) //nolint:gosec // the tree is root's: nobody else can swap a path
	})
}
