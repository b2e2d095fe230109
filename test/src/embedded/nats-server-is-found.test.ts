import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { findNatsServer } from '../../../src/embedded/nats/binary.ts'
import { type Teardown, testDataDir } from '../../support/engines.ts'

const { PATH } = process.env

function program(path: string, script: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}

const says = (version: string) => `echo "nats-server: v${version}"`

/** A machine of our making: a folder that is the first on its PATH, and one to keep a fetched server in. */
async function machine(t: Teardown): Promise<{ bin: string; kept: string; keptServer: string }> {
  const dir = await testDataDir(t)
  const bin = join(dir, 'bin')
  mkdirSync(bin)
  process.env.PATH = `${bin}:${PATH}`
  t.teardown(() => {
    process.env.PATH = PATH
  })
  const kept = join(dir, 'kept here')
  return { bin, kept, keptServer: join(kept, 'usr', 'sbin', 'nats-server') }
}

t.test('the server on the PATH is taken from 2.9 on, and its version says whether it can sync', async (t) => {
  const { bin, kept } = await machine(t)
  const path = join(bin, 'nats-server')
  for (const [version, hasSyncInterval] of [
    ['2.9.0', false],
    ['2.10.1', true],
    ['3.0.0', true],
  ] as const) {
    program(path, says(version))
    t.strictSame(await findNatsServer([kept]), { path, hasSyncInterval })
  }
})

t.test('one that is too old or does not run is passed over for the one kept', async (t) => {
  const { bin, kept, keptServer } = await machine(t)
  program(keptServer, says('2.9.10'))
  for (const script of [says('2.8.4'), says('1.9.0'), 'exit 1']) {
    program(join(bin, 'nats-server'), script)
    t.match(await findNatsServer([kept]), { path: keptServer })
  }
})

t.test('what Debian’s tools bring is unpacked and kept, and nothing else is left', async (t) => {
  const { bin, kept, keptServer } = await machine(t)
  program(join(bin, 'nats-server'), says('2.8.4'))
  program(join(bin, 'apt-get'), 'case "$*" in *download*) touch nats-server_2.9.10_amd64.deb;; esac')
  const unpack = `mkdir -p "$3/usr/sbin" && printf '#!/bin/sh\\n${says('2.9.10')}\\n' > "$3/usr/sbin/nats-server"`
  program(join(bin, 'dpkg-deb'), `${unpack} && chmod 755 "$3/usr/sbin/nats-server"`)
  t.strictSame(await findNatsServer([kept]), { path: keptServer, hasSyncInterval: false })
  program(join(bin, 'apt-get'), 'exit 1')
  t.match(await findNatsServer([kept]), { path: keptServer }, 'and not fetched again')
  t.ok(existsSync(keptServer))
})

t.test('where none can be had, the error says what to do', async (t) => {
  const { bin, kept } = await machine(t)
  program(join(bin, 'nats-server'), says('2.8.4'))
  program(join(bin, 'apt-get'), 'echo "no network" >&2; exit 100')
  await t.rejects(findNatsServer([kept]), /Install nats-server, or set NATS_URL.*no network/s)
  t.notOk(existsSync(kept))
})
