/** Files of the deployment are sound. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { REFERENCE_PACKAGE } from '../../scripts/reference-package.ts'
import { loadConfig } from '../../src/config/load.ts'
import { readSettings } from '../../src/config/settings.ts'
import { fetchDebianPackages } from '../../src/embedded/debian-packages.ts'
import { findProgram } from '../../src/embedded/programs.ts'
import type { ChildRole } from '../../src/server/messages.ts'
import { DRAIN_MS, KILL_AFTER_MS } from '../../src/server/supervisor/stop-bounds.ts'
import { ROOT, readText } from '../support/source-files.ts'

t.test('compose file is confined', async (t) => {
  // The compose file: it cannot be run here, but what it promises can be read in it.
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

  t.test(
    'no container may gain privileges, and none but the one that prepares folders is root',
    async (t) => {
      for (const [name, { user, read_only, cap_drop, security_opt }] of Object.entries(services)) {
        t.same(security_opt, ['no-new-privileges:true'], name)
        // The gateway's image names its own user.
        if (name !== 'gateway') t.equal(user === 'root', name === 'folders', name)
        t.ok(name === 'gateway' || user !== undefined, name)
        t.same(cap_drop, name === 'clickhouse' ? [] : ['ALL'], name)
        t.equal(read_only, !['postgres', 'nats', 'clickhouse'].includes(name), name)
      }
      t.match(readText('Dockerfile'), /^USER node$/m)
    },
  )

  t.test('the service has the time to stop, all its roles one after another', async (t) => {
    const { roles } = readSettings({})
    const longestMs = roles.reduce((sum, role) => sum + DRAIN_MS[role] + KILL_AFTER_MS, 0)
    t.ok(Number.parseInt(services.gateway!.stop_grace_period!, 10) * 1000 > longestMs)
    const seconds = [longestMs, DRAIN_MS.gateway + KILL_AFTER_MS].map((ms) => ms / 1000)
    t.match(
      readText('docs/operating.md'),
      `It takes at most ${seconds[0]} seconds: ${seconds[1]} for the gateways`,
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
    const variables = Object.fromEntries(
      [...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => [name, secret]),
    )
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
})

t.test('Node.js 20 installs the service without a warning', (t) => {
  const OLDEST_MAJOR = 20
  interface Locked {
    readonly dev?: boolean
    readonly engines?: { readonly node?: string }
  }
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(readText('package-lock.json'))
  const tooNew = Object.entries(packages)
    .filter(([, { dev }]) => dev !== true)
    .filter(([, { engines }]) => {
      const ranges = engines?.node?.split('||') ?? ['*']
      return !ranges.some((range) => Number(/\d+/.exec(range)?.[0] ?? 0) <= OLDEST_MAJOR)
    })
    .map(([path, { engines }]) => `${path}: ${engines?.node}`)
  t.same(tooNew, [])
  t.end()
})

t.test('kubernetes manifests are sound', async (t) => {
  // The manifests for Kubernetes, rendered by kubectl and checked against the schemas of its API. No cluster is needed.
  const ROOT = fileURLToPath(new URL('../../', import.meta.url))
  const CACHE = join(ROOT, 'node_modules/.cache/tollgate/kubernetes-client')
  const FETCHED = join(CACHE, 'usr/bin/kubectl')
  const FETCH_BOUND_MS = 120_000
  /** What a person writes into the secret; the values are of the right form. */
  const SECRET = {
    TOLLGATE_MASTER_KEY: '0'.repeat(64),
    TOLLGATE_DATABASE_OWNER_URL: 'postgres://tollgate_owner:secret@postgres-rw:5432/tollgate',
    DATABASE_URL: 'postgres://tollgate:secret@postgres-rw:5432/tollgate',
    DATABASE_READ_URL: 'postgres://tollgate:secret@postgres-ro:5432/tollgate',
    NATS_URL: 'nats://tollgate:secret@nats:4222',
    CLICKHOUSE_URL: 'http://tollgate:secret@clickhouse:8123/tollgate',
    S3_ENDPOINT: 'https://s3.example.com',
    S3_ACCESS_KEY_ID: 'id',
    S3_SECRET_ACCESS_KEY: 'secret',
    OPENAI_API_KEY: 'secret',
  }

  // biome-ignore lint/suspicious/noExplicitAny: objects of many kinds, whose fields the first test checks against the schemas of the API.
  type Manifest = any

  async function kubectl(): Promise<string> {
    const installed = findProgram('kubectl')
    if (installed !== null) return installed
    if (!existsSync(FETCHED))
      await fetchDebianPackages({
        words: ['download', 'kubernetes-client'],
        folder: CACHE,
        boundMs: FETCH_BOUND_MS,
        isUsable: async () => existsSync(FETCHED),
      })
    return FETCHED
  }

  /** Returns what the compiler says of the objects as literals of the types of the API; empty: they agree. */
  function checkTypes(t: Test, objects: readonly Manifest[]): string {
    const lines = objects.map((object, index) => {
      const [version, group = 'core'] = object.apiVersion.split('/').reverse()
      const type = `import('kubernetes-types/${group.split('.')[0]}/${version}').${object.kind}`
      return `export const object${index}: ${type} = ${JSON.stringify(object)}\n`
    })
    const folder = t.testdir({
      'objects.ts': lines.join(''),
      'tsconfig.json':
        '{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true, "types": []}}',
    })
    const compiler = join(ROOT, 'node_modules/.bin/tsc')
    return spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' }).stdout
  }

  const rendered = execFileSync(await kubectl(), ['kustomize', join(ROOT, 'deploy/kubernetes')], {
    encoding: 'utf8',
  })
  const manifests: Manifest[] = parseAllDocuments(rendered).map((document) => document.toJS())
  const ofKind = (kind: string): Manifest[] => manifests.filter((one) => one.kind === kind)
  const workloads = [...ofKind('StatefulSet'), ...ofKind('Deployment')]
  const podOf = (workload: Manifest) => workload.spec.template
  const isChosen = (pod: Manifest, { matchLabels = {}, matchExpressions = [] }: Manifest): boolean =>
    Object.entries(matchLabels).every(([name, value]) => pod.metadata.labels[name] === value) &&
    matchExpressions.every(({ key, values }: Manifest) => values.includes(pod.metadata.labels[key]))

  t.test('every object is what the API takes', async (t) => {
    for (const { kind, metadata } of manifests)
      t.equal(kind === 'Namespace' ? metadata.name : metadata.namespace, 'tollgate')
    t.same(checkTypes(t, manifests), '')
    const [gateway] = ofKind('StatefulSet')
    const unknown = { ...gateway, spec: { ...gateway.spec, serviceNames: 'gateway' } }
    t.match(checkTypes(t, [unknown]), /serviceNames.* does not exist/, 'what it does not take is refused')
  })

  t.test('pods run as an ordinary user and write nowhere but in their volumes', (t) => {
    t.same(workloads.map(({ metadata }) => metadata.name).sort(), ['gateway', 'settler', 'tasks'])
    for (const workload of workloads) {
      const { spec } = podOf(workload)
      t.match(spec, {
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            image: /:\d/,
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
          },
        ],
      })
      const claims = (workload.spec.volumeClaimTemplates ?? []).map(({ metadata }: Manifest) => metadata.name)
      const volumes = new Set([...claims, ...spec.volumes.map(({ name }: Manifest) => name)])
      const mounted = spec.containers[0].volumeMounts.map(({ name }: Manifest) => name)
      t.same(new Set(mounted), volumes, 'each volume is mounted')
      t.same(
        claims,
        workload.metadata.name === 'gateway' ? ['data'] : [],
        'the journal of a gateway outlives its pod',
      )
    }
    t.end()
  })

  t.test('settings and secret are those that the service reads', (t) => {
    const settings = ofKind('ConfigMap').find(({ metadata }) => metadata.name.startsWith('tollgate-settings'))
    const file = ofKind('ConfigMap').find(({ metadata }) => metadata.name === 'tollgate-config')
    for (const workload of workloads) {
      const [container] = podOf(workload).spec.containers
      t.same(container.envFrom, [
        { configMapRef: { name: settings.metadata.name } },
        { secretRef: { name: 'tollgate' } },
      ])
      const own = Object.fromEntries(container.env.map(({ name, value }: Manifest) => [name, value]))
      const read = readSettings({ ...settings.data, ...SECRET, ...own, TOLLGATE_DATA_DIR: '/data' })
      t.same(read.roles, [workload.metadata.name])
      const [configured] = podOf(workload).spec.volumes.filter((one: Manifest) => one.name === 'config')
      t.equal(configured.configMap.name, file.metadata.name)
      const folder = container.volumeMounts.find(({ name }: Manifest) => name === 'config').mountPath
      t.equal(read.configPath, join(folder, 'tollgate.yaml'))
    }
    const loaded = loadConfig(
      { path: 'tollgate.yaml', digest: '', text: file.data['tollgate.yaml'], refusal: null },
      SECRET,
    )
    t.same(loaded.ok ? [] : loaded.problems, [])
    t.end()
  })

  t.test('services, budgets, policies and the autoscaler find their pods', (t) => {
    const pods = workloads.map(podOf)
    const chosen = (selector: Manifest) => pods.filter((pod) => isChosen(pod, selector)).length
    for (const { spec, metadata } of ofKind('Service')) {
      t.equal(chosen({ matchLabels: spec.selector }), 1, metadata.name)
      const names = pods.flatMap(({ spec }) =>
        (spec.containers[0].ports ?? []).map(({ name }: Manifest) => name),
      )
      for (const { targetPort } of spec.ports) t.ok(names.includes(targetPort), targetPort)
    }
    for (const { spec, metadata } of ofKind('PodDisruptionBudget'))
      t.equal(chosen(spec.selector), 1, metadata.name)
    t.same(
      ofKind('NetworkPolicy').map(({ spec }) => chosen(spec.podSelector)),
      ofKind('NetworkPolicy').map(
        ({ metadata }) => ({ gateway: 1, workers: 2, egress: 3 })[metadata.name as 'egress'],
      ),
    )
    const [scaler] = ofKind('HorizontalPodAutoscaler')
    const [gateway] = ofKind('StatefulSet')
    t.match(scaler.spec.scaleTargetRef, { kind: 'StatefulSet', name: gateway.metadata.name })
    t.equal(gateway.spec.replicas, undefined, 'the autoscaler alone sets the number of pods')
    t.equal(gateway.spec.serviceName, 'gateway-pods')
    t.end()
  })

  t.test('settlers and task workers are probed and scraped where they listen', (t) => {
    for (const { metadata, ...deployment } of ofKind('Deployment')) {
      const { metadata: labels, spec } = podOf(deployment)
      const [{ env, ports, startupProbe, readinessProbe, livenessProbe }] = spec.containers
      const variables = Object.fromEntries(env.map(({ name, value }: Manifest) => [name, value]))
      t.same(ports, [{ name: 'admin', containerPort: Number(variables.TOLLGATE_ADMIN_PORT) }], metadata.name)
      t.equal(variables.TOLLGATE_ADMIN_HOST, '0.0.0.0')
      t.same(labels.annotations, {
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': variables.TOLLGATE_ADMIN_PORT,
      })
      for (const probe of [startupProbe, readinessProbe, livenessProbe]) t.equal(probe.httpGet.port, 'admin')
      t.equal(readinessProbe.httpGet.path, '/readyz')
      t.equal(livenessProbe.httpGet.path, '/healthz')
    }
    const workers = ofKind('NetworkPolicy').find(({ metadata }) => metadata.name === 'workers')
    t.match(workers.spec.ingress, [{ from: [{}], ports: [{ port: 'admin' }] }], 'for `monitoring` alone')
    t.end()
  })

  t.test('each role has the time to stop', (t) => {
    for (const workload of workloads) {
      const role = workload.metadata.name as ChildRole
      const { terminationGracePeriodSeconds } = podOf(workload).spec
      t.ok(terminationGracePeriodSeconds * 1000 > DRAIN_MS[role] + KILL_AFTER_MS, role)
    }
    t.end()
  })

  t.test('a gateway that drains gets no calls', (t) => {
    const [container] = podOf(ofKind('StatefulSet')[0]).spec.containers
    t.equal(container.readinessProbe.httpGet.path, '/readyz?for=calls', 'while an engine is away calls go on')
    t.equal(container.livenessProbe.httpGet.path, '/healthz')
    t.end()
  })
})

t.test('bill of materials is complete', async (t) => {
  // The bill of materials of a release: CycloneDX that names every package the service installs, and no host.
  const MAX_BYTES = 64 * 1024 * 1024

  const component = z.object({
    'bom-ref': z.string().min(1),
    type: z.enum(['application', 'library']),
    name: z.string().min(1),
    version: z.string().min(1),
    purl: z.string().startsWith('pkg:npm/'),
  })
  const checksum = z.object({ alg: z.literal('SHA-512'), content: z.string().regex(/^[0-9a-f]{128}$/) })
  const bill = z.object({
    bomFormat: z.literal('CycloneDX'),
    specVersion: z.string().regex(/^1\.\d+$/),
    serialNumber: z.string().startsWith('urn:uuid:'),
    metadata: z.object({ component }),
    components: z.array(component.extend({ hashes: z.array(checksum).min(1) })),
    dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
  })

  const installed = z.object({
    dependencies: z.record(z.string(), z.string()),
    optionalDependencies: z.record(z.string(), z.string()),
    devDependencies: z.record(z.string(), z.string()),
  })
  const { dependencies, optionalDependencies, devDependencies } = installed.parse(
    JSON.parse(readText('package.json')),
  )

  /** `npm:uws-pack@20.0.8` is version 20.0.8 under another name. */
  const versionOf = (wanted: string): string => wanted.replace(/^npm:.*@/, '')

  async function billOf(...words: string[]) {
    const command = ['run', '--silent', 'sbom', '--', ...words]
    const { stdout } = await promisify(execFile)('npm', command, { cwd: ROOT, maxBuffer: MAX_BYTES })
    return { ...bill.parse(JSON.parse(stdout)), text: stdout }
  }

  t.test('every dependency, and none that is for development alone', async (t) => {
    const [whole, image] = await Promise.all([billOf(), billOf('--without-optional')])
    t.match(whole.metadata.component, { type: 'application', purl: /^pkg:npm\/tollgate@/ })
    for (const { components, dependencies: tree, metadata, text } of [whole, image]) {
      const versions = new Map(components.map(({ name, version }) => [name, version]))
      const wanted = {
        ...dependencies,
        ...(components === whole.components && optionalDependencies),
        [REFERENCE_PACKAGE.name]: REFERENCE_PACKAGE.version,
      }
      for (const [name, version] of Object.entries(wanted))
        t.equal(versions.get(name), versionOf(version), name)
      const refs = new Set([metadata.component, ...components].map((one) => one['bom-ref']))
      const unknown = tree
        .flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
        .filter((ref) => !refs.has(ref))
      t.same(unknown, [])
      t.equal(tree.length, refs.size)
      t.notMatch(text, /registry/)
    }
    // The embedded engines bring some of the others along.
    for (const name of Object.keys({ ...optionalDependencies, ...devDependencies }))
      t.notOk(
        image.components.some((component) => component.name === name),
        name,
      )
  })
})
