/** The compose file: it cannot be run here, but what it promises can be read in it. */
import t from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { readSettings } from '../../src/config/settings.ts'
import { DRAIN_MS, KILL_AFTER_MS } from '../../src/server/supervisor/stop-bounds.ts'
import { readText } from '../support/source-files.ts'

const text = readText('docker-compose.yml')
const dependsOn = z.record(z.string(), z.object({ condition: z.string() }))
const service = z.object({
  user: z.string().optional(),
  image: z.string().optional(),
  environment: z.record(z.string(), z.string()).default({}),
  depends_on: dependsOn.default({}),
  read_only: z.boolean(),
  cap_drop: z.array(z.string()),
  security_opt: z.array(z.string()),
  volumes: z.array(z.string()).default([]),
  stop_grace_period: z.string().optional(),
})
const file = z.object({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) })
const { services, volumes } = file.parse(parse(text, { merge: true }))

/** As compose puts variables in. */
const filled = (value: string, variables: Record<string, string>): string =>
  value.replace(/\$\{(\w+)(?::[?-]([^}]*))?\}/g, (_, name: string, other = '') => variables[name] ?? other)

t.test('every secret is required, and no two engines share one', async (t) => {
  const secrets = [...text.matchAll(/\$\{(\w*(?:PASSWORD|MASTER_KEY))\b([^}]*)\}/g)]
  t.ok(secrets.length > 0)
  for (const [whole, , rest] of secrets) t.match(rest, /^:\?see the top of/, whole)
  const names = new Set(secrets.map(([, name]) => name))
  const made = /for name in ([^;]+);/.exec(text.replace(/\\\n#/g, ''))?.[1]?.trim().split(/\s+/)
  t.same(new Set(made), names, 'the top of the file makes each of them')
  const engines = {
    postgres: 'POSTGRES_ADMIN_PASSWORD',
    clickhouse: 'CLICKHOUSE_PASSWORD',
    minio: 'MINIO_PASSWORD',
  }
  for (const [name, password] of Object.entries(engines)) {
    const given = JSON.stringify(services[name]?.environment)
    t.match(given, password)
    for (const other of Object.values(engines)) if (other !== password) t.notMatch(given, other)
  }
})

t.test('no container may gain privileges, and none but the one that prepares folders is root', async (t) => {
  for (const [name, { user, read_only, cap_drop, security_opt }] of Object.entries(services)) {
    t.same(security_opt, ['no-new-privileges:true'], name)
    // The gateway's image names its own user.
    if (name !== 'gateway') t.equal(user === 'root', name === 'folders', name)
    t.ok(name === 'gateway' || user !== undefined, name)
    t.same(cap_drop, name === 'clickhouse' ? [] : ['ALL'], name)
    t.equal(read_only, !['postgres', 'nats', 'clickhouse'].includes(name), name)
  }
  t.match(readText('Dockerfile'), /^USER node$/m)
})

t.test('the service has the time to stop, all its roles one after another', async (t) => {
  const { roles } = readSettings({})
  const longestMs = roles.reduce((sum, role) => sum + DRAIN_MS[role] + KILL_AFTER_MS, 0)
  t.ok(Number.parseInt(services.gateway!.stop_grace_period!, 10) * 1000 > longestMs)
  const seconds = [longestMs, DRAIN_MS.gateway + KILL_AFTER_MS].map((ms) => ms / 1000)
  t.match(
    readText('docs/operating.md'),
    `A stop takes ${seconds[0]} seconds at most: ${seconds[1]} for the gateways`,
  )
})

t.test('the owner of the database migrates, and the service has a role without its rights', async (t) => {
  for (const role of ['tollgate_owner', 'tollgate'])
    t.match(text, `CREATE ROLE ${role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD`)
  t.match(text, 'CREATE DATABASE tollgate OWNER tollgate_owner;')
})

t.test('what it names is there, and the service accepts its settings', async (t) => {
  for (const [name, { depends_on, volumes: mounts }] of Object.entries(services)) {
    for (const other of Object.keys(depends_on)) t.ok(services[other], `${name} waits for ${other}`)
    for (const mount of mounts) t.ok(mount.split(':')[0]! in volumes, `${name} has ${mount}`)
  }
  const secret = 'ab'.repeat(32)
  const variables = Object.fromEntries([...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => [name, secret]))
  const environment = Object.entries(services.gateway!.environment).map(([name, value]) => [
    name,
    filled(value, variables),
  ])
  const { databaseOwnerUrl, databaseUrl } = readSettings(Object.fromEntries(environment), '/app')
  t.equal(databaseOwnerUrl, `postgres://tollgate_owner:${secret}@postgres:5432/tollgate`)
  t.not(databaseOwnerUrl, databaseUrl)
  t.match(readSettings(Object.fromEntries(environment), '/app'), {
    databaseUrl: `postgres://tollgate:${secret}@postgres:5432/tollgate`,
    natsUrl: `nats://tollgate:${secret}@nats:4222`,
    clickhouseUrl: `http://tollgate:${secret}@clickhouse:8123/tollgate`,
    objectStore: { endpoint: 'http://minio:9000', secretAccessKey: secret },
  })
})
