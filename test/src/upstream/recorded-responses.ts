import type { ParseOptions } from './parse.ts'

export interface RecordedResponse extends ParseOptions {
  readonly name: string
  readonly text: string
  readonly status: number
  readonly body: string
  readonly reusable: boolean
}

const lines = (...parts: string[]): string => parts.join('\r\n')

const frames = [
  'data: {"id":"c1","choices":[{"delta":{"content":"Gr\u00c3\u00bc\u00c3\u009fe"}}]}\n\n',
  'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}\n\n',
  'data: [DONE]\n\n',
]
const chunk = (data: string, extension = ''): string =>
  `${data.length.toString(16)}${extension}\r\n${data}\r\n`

/** Responses as servers send them, latin1; obs-text and UTF-8 appear as their bytes. */
export const RECORDED_RESPONSES: readonly RecordedResponse[] = [
  {
    name: 'JSON with content-length',
    text: lines(
      'HTTP/1.1 200 OK',
      'Date: Thu, 01 Jan 2026 00:00:00 GMT',
      'Content-Type: application/json',
      'Content-Length: 17',
      'Connection: keep-alive',
      'Keep-Alive: timeout=5',
      '',
      '{"object":"list"}',
    ),
    status: 200,
    body: '{"object":"list"}',
    reusable: true,
  },
  {
    name: 'an event stream, one chunk an event',
    text: lines(
      'HTTP/1.1 200 OK',
      'content-type: text/event-stream; charset=utf-8',
      'cache-control: no-cache',
      'transfer-encoding: chunked',
      'x-request-id: req_01',
      '',
      `${frames.map((frame) => chunk(frame)).join('')}0\r\n\r\n`,
    ),
    status: 200,
    body: frames.join(''),
    reusable: true,
  },
  {
    name: 'chunks cut through events, upper-case sizes, leading zeros, extensions, trailers',
    text: lines(
      'HTTP/1.1 200 OK',
      'Transfer-Encoding: Chunked',
      'Trailer: x-digest',
      '',
      `${chunk('data: on', ';a')}${chunk('e\n\ndata: ', ';a=b;c="d \\" e"')}00A\r\n0123456789\r\n0;last\r\nX-Digest: abc\r\nx-more:\r\n\r\n`,
    ),
    status: 200,
    body: 'data: one\n\ndata: 0123456789',
    reusable: true,
  },
  {
    name: 'interim responses before the final one',
    text: lines(
      'HTTP/1.1 100 Continue',
      '',
      'HTTP/1.1 103 Early Hints',
      'Link: </style.css>; rel=preload',
      '',
      'HTTP/1.1 201 Created',
      'Content-Length: 2',
      '',
      'ok',
    ),
    status: 201,
    body: 'ok',
    reusable: true,
  },
  {
    name: 'a rate limit with Connection: close',
    text: lines(
      'HTTP/1.1 429 Too Many Requests',
      'Retry-After: 3',
      'Connection: Close',
      'Content-Length: 5',
      '',
      'slow!',
    ),
    status: 429,
    body: 'slow!',
    reusable: false,
  },
  {
    name: 'HTTP/1.0, body ended by close',
    text: lines('HTTP/1.0 200 OK', 'Content-Type: text/plain', '', 'all there is'),
    closed: true,
    status: 200,
    body: 'all there is',
    reusable: false,
  },
  {
    name: 'HTTP/1.0 that keeps alive',
    text: lines('HTTP/1.0 200 OK', 'Connection: Keep-Alive', 'Content-Length: 3', '', 'one'),
    status: 200,
    body: 'one',
    reusable: true,
  },
  {
    name: 'HTTP/1.0 that does not',
    text: lines('HTTP/1.0 200 OK', 'Content-Length: 3', '', 'one'),
    status: 200,
    body: 'one',
    reusable: false,
  },
  {
    name: 'HTTP/1.1, body ended by close',
    text: lines('HTTP/1.1 200 OK', '', 'until the end'),
    closed: true,
    status: 200,
    body: 'until the end',
    reusable: false,
  },
  {
    name: '204 without a body',
    text: lines('HTTP/1.1 204 No Content', 'X-Empty:', '', ''),
    status: 204,
    body: '',
    reusable: true,
  },
  {
    name: '304 whose length is that of another response',
    text: lines('HTTP/1.1 304 Not Modified', 'ETag: "a"', 'Content-Length: 1234', '', ''),
    status: 304,
    body: '',
    reusable: true,
  },
  {
    name: 'the answer to a HEAD',
    text: lines('HTTP/1.1 200 OK', 'Content-Length: 1234', '', ''),
    isHead: true,
    status: 200,
    body: '',
    reusable: true,
  },
  {
    name: 'the answer to a HEAD that would be chunked',
    text: lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', ''),
    isHead: true,
    status: 200,
    body: '',
    reusable: true,
  },
  {
    name: 'no reason phrase, no blank, obs-text and tabs in values, repeated fields',
    text: lines(
      'HTTP/1.1 500',
      'x-text: \t caf\u00e9\tau lait \t',
      'set-cookie: a=1',
      'set-cookie: b=2',
      'content-length: 0',
      '',
      '',
    ),
    status: 500,
    body: '',
    reusable: true,
  },
]
