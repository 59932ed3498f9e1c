// Package client speaks the Iceberg REST protocol as far as a load generator needs it,
// and knows which answers are right.
package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Reply is an answer as it came over the wire. Body is compressed when Gzip is set.
type Reply struct {
	Status  int
	Body    []byte
	Gzip    bool
	ETag    string
	Header  http.Header
	Elapsed time.Duration // from before the request to the last byte of the answer
}

// Conn is one keep-alive connection. It writes requests that were rendered beforehand
// and has no goroutines of its own: a general HTTP client would cost as much CPU as the
// servers that are measured, and hide half of their difference. It is not safe for
// concurrent use.
type Conn struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
}

// replyTimeout bounds a request: a server that hangs is an error, not an endless run.
const replyTimeout = 60 * time.Second

// Dial returns a connection to host:port that is opened with the first request.
func Dial(address string) *Conn { return &Conn{address: address} }

// Close ends the connection.
func (c *Conn) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

// Request is a rendered request.
type Request struct {
	raw    []byte
	method string
}

// NewRequest renders a request. It asks for gzip, as Java and Python clients do, unless
// the headers say otherwise.
func NewRequest(address, method, path string, body []byte, header map[string]string) Request {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: catalogd-bench\r\n", method, path, address)
	if _, ok := header["Accept-Encoding"]; !ok {
		b.WriteString("Accept-Encoding: gzip\r\n")
	}
	for name, value := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return Request{raw: b.Bytes(), method: method}
}

// Do sends a request and reads the whole answer, whatever its status.
func (c *Conn) Do(ctx context.Context, req Request) (Reply, error) {
	if err := c.open(ctx); err != nil {
		return Reply{}, err
	}
	reply, err := c.exchange(req)
	if err != nil {
		// What is left on the connection belongs to this answer: it cannot be used again.
		return Reply{}, errors.Join(err, c.Close())
	}
	return reply, nil
}

func (c *Conn) open(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	return nil
}

func (c *Conn) exchange(req Request) (Reply, error) {
	start := time.Now()
	if err := c.conn.SetDeadline(start.Add(replyTimeout)); err != nil {
		return Reply{}, err
	}
	if _, err := c.conn.Write(req.raw); err != nil {
		return Reply{}, err
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: req.method})
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	body, err := readBody(resp)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{
		Status: resp.StatusCode, Body: body, ETag: resp.Header.Get("ETag"), Header: resp.Header,
		Gzip:    strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip"),
		Elapsed: time.Since(start),
	}
	if resp.Close {
		return reply, c.Close()
	}
	return reply, nil
}

func readBody(resp *http.Response) ([]byte, error) {
	if resp.ContentLength < 0 {
		return io.ReadAll(resp.Body)
	}
	body := make([]byte, resp.ContentLength)
	_, err := io.ReadFull(resp.Body, body)
	return body, err
}
