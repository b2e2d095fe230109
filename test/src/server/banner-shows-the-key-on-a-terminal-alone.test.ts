import t from 'tap'
import { type BannerFacts, banner, factsJson } from '../../../src/server/supervisor/banner.ts'

const KEY = `sk-tollgate-${'0'.repeat(64)}`
const FACTS: BannerFacts = {
  version: '1',
  baseUrl: 'http://127.0.0.1:8080',
  publicUrl: null,
  consoleUrl: 'http://127.0.0.1:8787/console',
  signInUrl: 'http://127.0.0.1:8787/console/sign-in#link=secret-token',
  takenPort: null,
  startMs: 1,
  key: KEY,
  runFile: '/data/run.json',
  credit: '1',
  model: 'demo-chat',
  configPath: null,
  dataDir: '/data',
  engines: [],
}

t.test('on a terminal the key stands in the lines to copy; elsewhere they read it from its file', (t) => {
  const shown = banner(FACTS, true)
  t.equal(shown.split(KEY).length, 4)
  t.notMatch(shown, 'TOLLGATE_KEY')
  const kept = banner(FACTS, false)
  t.notMatch(kept, KEY)
  t.match(
    kept,
    /^export TOLLGATE_KEY=\$\(node -p 'JSON.parse\(fs.readFileSync\("\/data\/run.json"\)\).first_key'\)$/m,
  )
  t.match(shown, 'secret-token')
  t.notMatch(kept, 'secret-token')
  t.equal(kept.split('"Authorization: Bearer $TOLLGATE_KEY"').length, 3)
  t.end()
})

t.test('the same for a program', (t) => {
  t.match(JSON.parse(factsJson(FACTS, true)), { key: KEY, run_file: '/data/run.json' })
  t.match(JSON.parse(factsJson(FACTS, false)), { key: null, sign_in_url: null, run_file: '/data/run.json' })
  t.end()
})
