import t from 'tap'
import { parseOrigin } from '../../../src/upstream/client.ts'

t.test('base URLs', async (t) => {
  t.same(parseOrigin('https://api.example.com/v1'), {
    origin: {
      key: 'https://api.example.com:443',
      tls: true,
      host: 'api.example.com',
      port: 443,
      servername: 'api.example.com',
      authority: 'api.example.com',
    },
    pathPrefix: '/v1',
  })
  t.same(parseOrigin('http://LOCALHOST:8080/'), {
    origin: {
      key: 'http://localhost:8080',
      tls: false,
      host: 'localhost',
      port: 8080,
      authority: 'localhost:8080',
    },
    pathPrefix: '',
  })
})

t.test('addresses have no name for SNI', async (t) => {
  t.same(parseOrigin('https://127.0.0.1/a/b/').origin, {
    key: 'https://127.0.0.1:443',
    tls: true,
    host: '127.0.0.1',
    port: 443,
    authority: '127.0.0.1',
  })
  t.match(parseOrigin('https://[::1]:8443'), {
    origin: { host: '::1', port: 8443, authority: '[::1]:8443', servername: undefined },
    pathPrefix: '',
  })
})

t.test('the path keeps its escapes and loses final slashes', async (t) => {
  t.equal(parseOrigin('https://a/x%20y/z//').pathPrefix, '/x%20y/z')
})

t.test('the same place has the same key', async (t) => {
  t.equal(parseOrigin('https://A.example/x').origin.key, parseOrigin('https://a.example:443/y').origin.key)
  t.not(parseOrigin('https://a.example:80').origin.key, parseOrigin('http://a.example').origin.key)
})

const REFUSED: Record<string, RegExp> = {
  '': /not a valid/,
  'api.example.com/v1': /not a valid/,
  '/v1': /not a valid/,
  'ftp://a': /http/,
  'file:///etc/passwd': /http/,
  'https://user:secret@a': /credentials/,
  'https://user@a': /credentials/,
  'https://a/?key=secret': /query/,
  'https://a/#b': /fragment/,
  'http://a:0': /port/,
  'http://a:65536': /not a valid/,
}

for (const [url, message] of Object.entries(REFUSED)) {
  t.test(`"${url}" is refused`, async (t) => {
    t.throws(() => parseOrigin(url), { name: 'TypeError', message })
    try {
      parseOrigin(url)
    } catch (error) {
      t.notMatch(String(error), /secret/)
    }
  })
}
