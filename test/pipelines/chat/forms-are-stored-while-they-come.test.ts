import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { from, switchMap, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import { errorReply } from '../../../pipelines/calls/errors.ts'
import { jsonReply } from '../../../pipelines/calls/replies.ts'
import { MAX_FORM_BYTES, type ReadForm, readForm } from '../../../pipelines/media/inputs/read-form.ts'
import {
  ACCEPTED_IMAGES,
  type InputStore,
  storeDataUri,
} from '../../../pipelines/media/inputs/store-input.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import { MAX_BODY_BYTES } from '../../../src/http/request-reader.ts'
import { GatewayServer } from '../../../src/http/server.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { clientLimits, clientOn, HOST, RawClient, until } from '../../src/http/support.ts'
import { bytesOf, folderStore } from '../../src/storage/support.ts'

const MIB = 1024 * 1024
const RULES = {
  accepted: { ...ACCEPTED_IMAGES, maxBytes: 32 * MIB },
  files: { image: 2, 'image[]': 16, mask: 1 },
}

const png = (length: number): Buffer =>
  Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(length)])
const blob = (bytes: Buffer, type = 'image/png') => new Blob([Uint8Array.from(bytes)], { type })

interface Served {
  readonly url: string
  readonly port: number
  readonly folder: string
  readonly store: ObjectStore
  readonly recorded: Array<{ key: string; expiresAt: number }>
  readonly seen: GatewayRequest[]
  readonly forms: Array<ReadForm | null>
  readonly server: GatewayServer
}

const stored = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => join(parentPath, name).slice(folder.length + 1))

async function serve(
  t: Test,
  change: (store: ObjectStore) => ObjectStore = (store) => store,
): Promise<Served> {
  const { store: inFolder, folder } = await folderStore(t)
  const store = change(inFolder)
  const recorded: Served['recorded'] = []
  const deps: InputStore = {
    files: store,
    objects: { recordObjects: async (objects) => void recorded.push(...objects) },
    now: () => 1000,
  }
  const uploads = new Uploads({ files: store })
  const seen: GatewayRequest[] = []
  const forms: Served['forms'] = []
  const edit = (request: GatewayRequest) => {
    seen.push(request)
    const upload = uploads.begin('acc_a')
    return from(readForm(request, deps, { ...RULES, upload })).pipe(
      switchMap(async (form) => {
        forms.push(form)
        return jsonReply({ body: request.body.length, fields: form?.fields, files: form?.files })
      }),
    )
  }
  const refuse = () => throwError(() => new Failure('invalid_api_key', 'API key is invalid.'))
  const routes = new Map([
    ['/edit', { POST: { handler: edit, maxFormBytes: MAX_FORM_BYTES } }],
    ['/refuse', { POST: { handler: refuse, maxFormBytes: MAX_FORM_BYTES } }],
  ])
  const server = new GatewayServer({
    clients: clientLimits(),
    maxTextBytes: () => MAX_BODY_BYTES,
    routes,
    renderError: (path, id) => errorReply(path, id, { onUnforeseen: t.error, onInternal: () => undefined }),
  })
  const port = await server.listen(HOST, 0)
  t.teardown(() => server.close())
  return { url: `http://${HOST}:${port}`, port, folder, store, recorded, seen, forms, server }
}

const post = async (url: string, body: string | FormData, headers: Record<string, string> = {}) => {
  const response = await fetch(url, { method: 'POST', body, headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

t.test('fields in their order, files in the store as they were sent', async (t) => {
  const { url, store, recorded, seen } = await serve(t)
  const [one, two, mask] = [png(3 * MIB), png(100), png(70_000)]
  const form = new FormData()
  form.append('model', 'demo-image')
  form.append('image[]', blob(one), 'C:\\photos\\cat & dog.png')
  form.append('prompt', 'a hat, on the cat ☂')
  form.append('image[]', blob(two, 'text/plain'), '../../etc/passwd')
  form.append('mask', blob(mask), 'mask.png')
  const { status, body } = await post(`${url}/edit`, form)
  t.equal(status, 200)
  t.equal(seen[0]?.body.length, 0, 'nothing is held as a body')
  const id = seen[0]?.requestId
  const at = (number: number) => `inputs/${id}-${number}.png`
  const file = (number: number, bytes: Buffer, name: string) => ({
    from: 'store',
    key: at(number),
    media_type: 'image/png',
    bytes: bytes.length,
    name,
  })
  t.strictSame(body.fields, [
    ['model', 'demo-image'],
    ['prompt', 'a hat, on the cat ☂'],
  ])
  const found = body.files as { field: string; file: object }[]
  const files = found.map(({ field, file }) => ({ field, file }))
  t.strictSame(files, [
    { field: 'image[]', file: file(1, one, 'cat _ dog.png') },
    { field: 'image[]', file: file(2, two, 'passwd') },
    { field: 'mask', file: file(3, mask, 'mask.png') },
  ])
  for (const [number, bytes] of [
    [1, one],
    [2, two],
    [3, mask],
  ] as const)
    t.ok((await bytesOf((await store.get(at(number)))!.stream)).equals(bytes))
  t.same(
    recorded,
    [1, 2, 3].map((number) => ({ key: at(number), expiresAt: 1000 + 24 * 60 * 60 * 1000 })),
  )
})

t.test('a compressed form is read as it comes, and within the limit', async (t) => {
  const { url, forms } = await serve(t)
  const send = async (form: FormData) => {
    const plain = new Response(form)
    return fetch(`${url}/edit`, {
      method: 'POST',
      body: gzipSync(Buffer.from(await plain.arrayBuffer())),
      headers: { 'content-type': plain.headers.get('content-type')!, 'content-encoding': 'gzip' },
    })
  }
  const form = new FormData()
  form.append('prompt', 'a hat')
  form.append('image', blob(png(3 * MIB)), 'cat.png')
  t.equal((await send(form)).status, 200)
  t.match(forms[0], { fields: [['prompt', 'a hat']], files: [{ file: { bytes: 3 * MIB + 8 } }] })
  const expanding = new FormData()
  expanding.append('image', blob(Buffer.concat([png(100), Buffer.alloc(5 * MIB)])), 'cat.png')
  const refused = await send(expanding)
  t.equal(refused.status, 400)
  t.match(await refused.text(), /expands to more than 100 times its size/)
})

t.test('files of one content have one hash; others have others', async (t) => {
  const { url, forms } = await serve(t)
  const picture = png(1000)
  for (const bytes of [picture, Buffer.from(picture), png(999)]) {
    const form = new FormData()
    form.append('image', blob(bytes), 'a.png')
    await post(`${url}/edit`, form)
  }
  const [first, same, other] = forms.map((form) => form!.files[0]!.sha256.toString('hex'))
  t.equal(first, same)
  t.not(first, other)
})

t.test('any other body is as ever: whole', async (t) => {
  const { url, forms } = await serve(t)
  const { body } = await post(`${url}/edit`, '{"image":"x"}', { 'content-type': 'application/json' })
  t.equal(body.body, 13)
  t.same(forms, [null])
})

t.test('what is wrong with a form is said, and nothing of it stays', async (t) => {
  const { url, folder } = await serve(t)
  const refusalOf = async (build: (form: FormData) => void, headers?: Record<string, string>) => {
    const form = new FormData()
    form.append('image', blob(png(200_000)), 'good.png')
    build(form)
    const { status, body } = await post(`${url}/edit`, form, headers)
    const { code, message } = body.error as Record<string, string>
    return `${status} ${code} ${message}`
  }
  const file = (form: FormData, field: string, bytes = png(10), type?: string) =>
    form.append(field, blob(bytes, type), 'a.png')
  t.match(
    await refusalOf((form) => file(form, 'mask', Buffer.from('<svg onload="x">'))),
    '400 invalid_request The file in mask is not a PNG, JPEG, WebP or GIF image.',
  )
  t.match(await refusalOf((form) => file(form, 'mask', Buffer.alloc(0))), 'The file in mask is empty.')
  t.match(
    await refusalOf((form) => file(form, 'video')),
    '400 invalid_request The form brings a file in "video"; files go into image, image[], mask.',
  )
  t.match(await refusalOf((form) => file(form, 'constructor')), 'brings a file in "constructor"')
  t.match(
    await refusalOf((form) => {
      file(form, 'mask')
      file(form, 'mask')
    }),
    'more than 1 file in mask',
  )
  t.match(
    await refusalOf((form) => {
      for (let i = 0; i < 20; i++) file(form, 'image[]')
    }),
    /more than (?:16 files in image\[\]|19 files)/,
  )
  t.match(
    await refusalOf((form) => {
      for (let i = 0; i < 65; i++) form.append('x', '1')
    }),
    'more than 64 fields',
  )
  t.match(await refusalOf((form) => form.append('prompt', 'x'.repeat(256 * 1024 + 1))), 'longer than 256 KiB')
  t.match(
    await refusalOf((form) => file(form, 'mask', png(32 * MIB))),
    '413 request_too_large The file in mask is larger than 32 MiB.',
  )
  const raw = (body: string, type: string) => post(`${url}/edit`, body, { 'content-type': type })
  for (const [body, type] of [
    ['x', 'multipart/form-data'],
    ['', 'multipart/form-data; boundary=b'],
    ['--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nhalf', 'multipart/form-data; boundary=b'],
  ] as const)
    t.match(await raw(body, type), {
      status: 400,
      body: { error: { code: 'invalid_request', message: /cannot be read/ } },
    })
  t.same(stored(folder), [])
})

t.test('a store that is away is no fault of the form', async (t) => {
  const put = async () => {
    throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
  }
  const { url } = await serve(t, (store) => Object.assign(Object.create(store) as ObjectStore, { put }))
  const form = new FormData()
  form.append('image', blob(png(MIB)), 'a.png')
  const { status, body } = await post(`${url}/edit`, form)
  t.match({ status, body }, { status: 503, body: { error: { code: 'service_unavailable' } } })
  t.notMatch(JSON.stringify(body), '10.0.0.5')
})

const formHead = (length: number | 'chunked', path = '/edit'): string =>
  `POST ${path} HTTP/1.1\r\nhost: t\r\ncontent-type: multipart/form-data; boundary=b\r\n` +
  `${length === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${length}`}\r\n\r\n`
const filePart = (field: string): string =>
  `--b\r\ncontent-disposition: form-data; name="${field}"; filename="a.png"\r\n\r\n\x89PNG\r\n\x1a\n`

t.test('more than 64 MiB is refused, told beforehand or not', async (t) => {
  const { port, folder } = await serve(t)
  const told = clientOn(t, port)
  t.match(await told.send(formHead(MAX_FORM_BYTES + 1)).until((text) => text.includes('}')), /413.*64 MiB/s)

  const untold = clientOn(t, port)
  untold.send(formHead('chunked'))
  const chunk = (bytes: Buffer) =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  untold.send(chunk(Buffer.from(filePart('image'), 'latin1')))
  for (let sent = 0; sent < 70 && !untold.text.includes('}'); sent++) {
    if (!untold.socket.write(chunk(Buffer.alloc(MIB)))) await once(untold.socket, 'drain')
    if (sent === 30) untold.socket.write(chunk(Buffer.from(`\r\n${filePart('mask')}`, 'latin1')))
  }
  t.match(await untold.until((text) => text.includes('}')), /413.*larger than/s)
  t.same(stored(folder), [])
})

/** So much may the gateway hold while the store takes nothing: a read brings half a MiB, and stages have a few each. */
const MOST_HELD_BYTES = 20 * MIB
const ESTABLISHED = '01'

/**
 * Returns the bytes of a port's connections that lie in the kernel, sent or received: proc_net_tcp(5). The kernel
 * moves bytes from one connection's end to the other between two lines of one reading, hence several readings.
 */
const bytesInKernel = (port: number): number => Math.max(...Array.from({ length: 4 }, () => readQueues(port)))

function readQueues(port: number): number {
  const ends = new RegExp(`:${port.toString(16).toUpperCase().padStart(4, '0')}$`)
  const lines = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1)
  const queues = lines.flatMap((line) => {
    const [, local = '', remote = '', state, sizes = ''] = line.trim().split(/\s+/)
    return state === ESTABLISHED && (ends.test(local) || ends.test(remote)) ? sizes.split(':') : []
  })
  return queues.reduce((sum, hex) => sum + Number.parseInt(hex, 16), 0)
}

t.test('a slow store slows the client down: never is more held than a few pieces', async (t) => {
  let taken = 0
  const { port, seen, folder } = await serve(t, (store) =>
    Object.assign(Object.create(store) as ObjectStore, {
      put: (key: string, content: Readable, options: Parameters<ObjectStore['put']>[2]) => {
        async function* slowly() {
          for await (const piece of content) {
            taken += piece.length
            await new Promise((resolve) => setTimeout(resolve, 1))
            yield piece
          }
        }
        return store.put(key, Readable.from(slowly()), options)
      },
      delete: (keys: string[]) => store.delete(keys),
    }),
  )
  const length = 31 * MIB
  const start = Buffer.from(filePart('image'), 'latin1')
  const end = Buffer.from('\r\n--b--\r\n')
  const client = clientOn(t, port)
  client.send(formHead(start.length + length + end.length)).send(start)
  let held = 0
  for (let sent = 0; sent < length; sent += 65_536) {
    if (!client.socket.write(Buffer.alloc(65_536, 7))) await once(client.socket, 'drain')
    if ((sent / 65_536) % 8 !== 0) continue
    const sentBytes = client.socket.bytesWritten - client.socket.writableLength
    held = Math.max(held, sentBytes - taken - bytesInKernel(port))
  }
  client.send(end)
  t.match(await client.until((text) => text.includes('}')), '200 OK')
  t.ok(held < MOST_HELD_BYTES, `${(held / MIB).toFixed(1)} MiB held`)
  t.equal(seen.length, 1)
  t.equal(stored(folder).length, 1)
})

t.test('a client that leaves half-way leaves nothing in the store', async (t) => {
  const { port, folder, server, recorded } = await serve(t)
  const client = new RawClient(port)
  client.send(formHead(60 * MIB))
  client.send(Buffer.from(filePart('image'), 'latin1')).send(Buffer.alloc(200_000, 1))
  client.send(Buffer.from(`\r\n${filePart('mask')}`, 'latin1')).send(Buffer.alloc(200_000, 1))
  await until(() => recorded.length === 2 && stored(folder).length === 2)
  client.socket.destroy()
  await until(() => stored(folder).length === 0)
  await server.idle()
  t.equal(recorded.length, 2, 'what may have been left would go in a day')
})

t.test('a form that nobody reads passes: its client is answered, and its connection lives on', async (t) => {
  const { port, server } = await serve(t)
  const client = clientOn(t, port)
  for (let round = 1; round <= 2; round++) {
    client.send(formHead(8 * MIB, '/refuse'))
    for (let sent = 0; sent < 8; sent++)
      if (!client.socket.write(Buffer.alloc(MIB))) await once(client.socket, 'drain')
    const answers = (text: string) => text.split('HTTP/1.1 401').length - 1
    await client.until((text) => answers(text) === round)
    t.equal(answers(client.text), round)
  }
  await server.idle()
})

t.test('a data URI is taken in as a file is', async (t) => {
  const { store } = await folderStore(t)
  const recorded: string[] = []
  const deps: InputStore = {
    files: store,
    objects: { recordObjects: async (objects) => void recorded.push(...objects.map(({ key }) => key)) },
  }
  const upload = new Uploads({ files: store }).begin('acc_a')
  const place = { upload, requestId: 'req_1', number: 2, field: 'image[1]' }
  const take = (uri: string) => storeDataUri(deps, { ...place, uri }, ACCEPTED_IMAGES)
  const bytes = png(5000)
  const file = await take(`data:image/jpeg;base64,${bytes.toString('base64')}`)
  t.same(file, {
    from: 'store',
    key: 'inputs/req_1-2.png',
    media_type: 'image/png',
    bytes: bytes.length,
    name: 'file-2.png',
  })
  t.ok((await bytesOf((await store.get(file.key))!.stream)).equals(bytes))
  t.same(recorded, [file.key])
  for (const uri of ['data:image/png,abc', 'http://x.test/a.png', 'data:;base64,AAAA', ''])
    await t.rejects(take(uri), { code: 'invalid_request', message: /image\[1\] is not a data URI/ }, uri)
  for (const content of ['', '%%%'])
    await t.rejects(take(`data:image/png;base64,${content}`), { message: /image\[1\] is empty/ }, content)
  const page = `data:image/png;base64,${Buffer.from('<html>').toString('base64')}`
  await t.rejects(take(page), { message: /image\[1\] is not a PNG/ })
})
