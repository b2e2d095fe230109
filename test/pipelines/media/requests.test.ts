/** Requests of media: how they are read, and what becomes of uploads and jobs. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { EMPTY, lastValueFrom, NEVER, type Observable, of, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import type { ZodType } from 'zod'
import type { AuthenticatedCall } from '../../../pipelines/calls/authenticate.ts'
import type { Idempotency } from '../../../pipelines/calls/claim.ts'
import { editImages, type ImageStore, orderImages } from '../../../pipelines/media/images/images.ts'
import {
  describeMeaning,
  type ImageParams,
  readEdit,
  readGeneration,
} from '../../../pipelines/media/images/request.ts'
import type { InputStore } from '../../../pipelines/media/inputs/store-input.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import type { MediaOrders } from '../../../pipelines/media/media-call.ts'
import { chooseVariant, priceJob } from '../../../pipelines/media/priced-job.ts'
import { selectMediaModel } from '../../../pipelines/media/select-media.ts'
import {
  buildComposeJob,
  type ClipSources,
  RECOGNITION_KEPT_MS,
} from '../../../pipelines/media/videos/clip-job.ts'
import {
  VIDEO_BODY,
  VIDEO_JOBS,
  type VideoParams,
  type VideoSources,
} from '../../../pipelines/media/videos/jobs.ts'
import { readWork } from '../../../pipelines/media/videos/videos.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { type ChannelEntry, modelEntry } from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { avatarRequest } from '../../../schemas/media/avatars.ts'
import { clipSubtitleRequest } from '../../../schemas/media/clips.ts'
import { modelNamed } from '../../../schemas/media/fields.ts'
import { imageEditRequest } from '../../../schemas/media/images.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { musicRequest } from '../../../schemas/media/music.ts'
import { speechRequest } from '../../../schemas/media/speech.ts'
import { transcriptRequest } from '../../../schemas/media/transcripts.ts'
import { videoRequest } from '../../../schemas/media/videos.ts'
import { voiceRequest } from '../../../schemas/media/voices.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { parseAnswer } from '../../../src/channels/media/answer.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { loadConfigFile } from '../../../src/config/load.ts'
import { hashMeaning } from '../../../src/core/json/canonical.ts'
import { MAX_JSON_LEVELS } from '../../../src/core/json/scanner/tape.ts'
import { fileLinks } from '../../../src/core/media/file-link.ts'
import { createCatalog, type Route } from '../../../src/core/routing/catalog.ts'
import type { KnownKey } from '../../../src/credentials/credentials.ts'
import type { FormFile, GatewayRequest } from '../../../src/http/handler.ts'
import { NO_PARAMS } from '../../../src/http/router.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readAgentRequest } from '../../../src/protocols/chat-completions/agent-body.ts'
import { readChatCall } from '../../../src/protocols/chat-completions/dialect.ts'
import { generateContentDialect } from '../../../src/protocols/generate-content/dialect.ts'
import { messagesCount, messagesDialect } from '../../../src/protocols/messages/dialect.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import { responsesDialect } from '../../../src/protocols/responses/dialect.ts'
import { folderStore } from '../../src/storage/support.ts'
import { until } from '../../support/eventually.ts'
import { knownKey, walletView } from '../../support/known-key.ts'
import { channelAt, resultOf, taskOf } from './support.ts'

t.test('image requests are read', async (t) => {
  // Requests for images, as JSON and as forms.
  const LINK = 'https://example.com/a.png'
  const URI = 'data:image/png;base64,iVBORw0KGgo='
  const PNG = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
  const PLAIN = { model: 'sketch', prompt: 'A mill' }

  const read = (body: object) => readGeneration({ body: Buffer.from(JSON.stringify(body)) })
  const USUAL = {
    ...PLAIN,
    n: 1,
    size: null,
    isAsync: false,
    isInline: false,
    isEdit: false,
    images: [],
    mask: null,
    extra: {},
    callback_url: null,
  }

  t.test('what is left out is as usual, and null is left out', async (t) => {
    t.strictSame(read(PLAIN), USUAL)
    const nulls = { n: null, size: null, async: null, response_format: null, image: null, stream: null }
    t.strictSame(read({ ...PLAIN, ...nulls }), USUAL)
    t.strictSame(read({ ...PLAIN, stream: false, response_format: 'url', async: false }), USUAL)
  })

  t.test('images in base64 are not made asynchronously', async (t) => {
    const inline = { ...PLAIN, response_format: 'b64_json' }
    t.match(read(inline), { isInline: true, isAsync: false })
    t.match(read({ ...inline, async: false }), { isInline: true })
    const message = /'response_format'.*async/
    t.throws(() => read({ ...inline, async: true }), { code: 'invalid_request', status: 400, message })
  })

  t.test('what is named is read, the rest is left out', async (t) => {
    const all = {
      n: 3,
      size: '1x1',
      async: true,
      response_format: 'url',
      image: [LINK, URI],
      callback_url: LINK,
    }
    t.strictSame(
      read({ ...PLAIN, ...all, seed: 7, quality: 'high', steps: 90, sequential_image_generation: 'auto' }),
      {
        ...USUAL,
        n: 3,
        size: '1x1',
        isAsync: true,
        callback_url: LINK,
        images: [
          { field: 'image[0]', source: LINK },
          { field: 'image[1]', source: URI },
        ],
        extra: { quality: 'high', seed: 7 },
      },
    )
    t.strictSame(read({ ...PLAIN, image: LINK }).images, [{ field: 'image', source: LINK }])
  })

  t.test('a wish of a wrong kind is refused by its name', async (t) => {
    const wrong = { quality: 7, style: { a: [1] }, seed: 'x', watermark: 'no', output_compression: 101 }
    for (const [name, value] of Object.entries(wrong))
      t.throws(() => read({ ...PLAIN, [name]: value }), { code: 'invalid_request', message: `'${name}'` })
  })

  t.test('a prompt is counted in characters', async (t) => {
    t.equal(read({ ...PLAIN, prompt: '🌾'.repeat(32_000) }).prompt.length, 64_000)
    t.throws(() => read({ ...PLAIN, prompt: '🌾'.repeat(32_001) }), { message: /'prompt'.*32000/ })
    t.throws(() => read({ ...PLAIN, prompt: '' }), { message: /'prompt'/ })
  })

  t.test('an image is a link or a data URI of an image', async (t) => {
    for (const image of [
      'ftp://example.com/a.png',
      'a.png',
      '',
      [],
      [LINK, 7],
      `https://example.com/${'a'.repeat(2048)}`,
      'data:text/html;base64,aGk=',
      'data:image/png,raw',
      Array(17).fill(LINK),
    ])
      t.throws(
        () => read({ ...PLAIN, image }),
        { code: 'invalid_request', message: /'image/ },
        String(image).slice(0, 60),
      )
    t.equal(read({ ...PLAIN, image: Array(16).fill(URI) }).images.length, 16)
    t.throws(() => read({ ...PLAIN, image: Array(17).fill(LINK) }), { message: /'image'.*16/ })
    t.throws(() => read({ ...PLAIN, image: [LINK, 7] }), { message: /'image\[1\]'/ })
    t.throws(() => read({ ...PLAIN, image: [] }), { message: /'image'.*1/ })
  })

  const { store } = await folderStore(t)
  const inbox: InputStore = { files: store, objects: { recordObjects: async () => {} } }
  const uploads = new Uploads({ files: store })
  const reading = () => ({ upload: uploads.begin('acc_a'), checkModel: () => undefined })

  type Part = readonly [name: string, value: string | Buffer, fileName?: string]

  /** A request whose body is a form of these parts. */
  function formOf(parts: readonly Part[]): GatewayRequest {
    const form: GatewayRequest['form'] = {
      async read(_, takeFile) {
        const fields: [string, string][] = []
        for (const [field, value, name] of parts) {
          if (typeof value === 'string') fields.push([field, value])
          else await takeFile(fileOf(field, value, name), fields)
        }
        return fields
      },
    }
    return { requestId: 'req_1', body: Buffer.alloc(0), form } as Partial<GatewayRequest> as GatewayRequest
  }
  const fileOf = (field: string, bytes: Buffer, name = `${field}.png`): FormFile => ({
    field,
    name,
    mediaType: 'image/png',
    content: (async function* () {
      yield bytes
    })(),
  })
  const edit = (...parts: readonly Part[]) =>
    readEdit(formOf([['model', 'sketch'], ['prompt', 'A mill'], ...parts]), inbox, reading())

  const hashOf = (params: ImageParams) =>
    hashMeaning('POST', '/', '', describeMeaning(params)).toString('hex')

  t.test('a form says the same in texts', async (t) => {
    const asked = await edit(
      ['n', '2'],
      ['async', 'true'],
      ['size', ''],
      ['seed', '7'],
      ['image[]', PNG],
      ['mask', PNG],
      ['image', LINK],
    )
    t.match(asked, {
      ...PLAIN,
      n: 2,
      size: null,
      isAsync: true,
      isEdit: true,
      images: [
        {
          field: 'image[]',
          source: { from: 'store', key: 'inputs/req_1-1.png', bytes: PNG.length, name: 'image_.png' },
        },
        { field: 'image', source: LINK },
      ],
      mask: { field: 'mask', source: { key: 'inputs/req_1-2.png' } },
      extra: { seed: 7 },
    })
  })

  t.test('a file that nobody chose in a browser is none', async (t) => {
    const asked = await edit(['image', PNG], ['mask', Buffer.alloc(0), ''], ['image[]', Buffer.alloc(0), ''])
    t.match(asked, { images: { length: 1, 0: { field: 'image' } }, mask: null })
    t.same(hashOf(asked), hashOf(await edit(['image', PNG])))
    await t.rejects(
      edit(['image', Buffer.alloc(0), '']),
      { message: /'image'/ },
      'and the only one is missing',
    )
  })

  t.test('a long name of a file is cut at a whole character', async (t) => {
    const asked = await edit(['image', PNG, `${'𐐷'.repeat(120)}.jpeg`])
    const { name } = asked.images[0]!.source as { name: string }
    t.ok(name.isWellFormed())
    t.match(name, /^𐐷+\.jpeg$/u)
  })

  t.test('forms that mean the same are one intent, others are not', async (t) => {
    const hash = async (...parts: readonly Part[]) => hashOf(await edit(...parts))
    const first = await hash(['image', PNG], ['n', '1'])
    for (const same of [
      [
        ['image', PNG],
        ['n', '1'],
      ],
      [
        ['n', '1'],
        ['image', PNG],
      ],
      [['image', PNG, 'other-name.png']],
      [
        ['image[]', PNG],
        ['size', ''],
      ],
    ] as const)
      t.equal(await hash(...same), first)
    for (const other of [
      [
        ['image', PNG],
        ['n', '2'],
      ],
      [
        ['image', Buffer.concat([PNG, PNG])],
        ['n', '1'],
      ],
      [
        ['image', PNG],
        ['image', PNG],
      ],
      [
        ['image', PNG],
        ['mask', PNG],
      ],
    ] as const)
      t.not(await hash(...other), first)
  })

  t.test('a form that is not in order is refused by name', async (t) => {
    const file: Part = ['image', PNG]
    const wrong: readonly (readonly [readonly Part[], RegExp])[] = [
      [[], /'image'/],
      [[file, ['n', 'two']], /'n'/],
      [[file, ['n', '1'], ['n', '2']], /'n' is not valid: the form has it more than once/],
      [[['prompt', 'A hill'], file], /'prompt' is not valid: the form has it more than once/],
      [[file, ['mask', Buffer.alloc(0)]], /The file in mask is empty/],
      [[file, ['n', '11']], /'n'/],
      [[file, ['async', 'yes']], /'async'/],
      [[file, ['response_format', 'jpeg']], /'response_format'/],
      [[file, ['image', 'a.png']], /'image'/],
      [[file, ['mask', LINK], ['mask', PNG]], /'mask'/],
      [[file, ['mask', PNG], ['mask', PNG]], /mask/],
      [[file, ['thing', PNG]], /thing/],
      [[['image', Buffer.from('<svg/>')]], /image is not a PNG/],
      [[...Array<Part>(10).fill(['image', PNG]), ...Array<Part>(7).fill(['image[]', PNG])], /'image'.*16/],
    ]
    for (const [parts, message] of wrong)
      await t.rejects(edit(...parts), { code: 'invalid_request', message }, String(message))
  })

  t.test('an edit as JSON has an image', async (t) => {
    const json = (body: object) =>
      readEdit(
        { body: Buffer.from(JSON.stringify(body)), form: null } as Partial<GatewayRequest> as GatewayRequest,
        inbox,
        reading(),
      )
    t.match(await json({ ...PLAIN, image: URI, mask: LINK, quality: 'hd' }), {
      isEdit: true,
      images: [{ field: 'image', source: URI }],
      mask: { field: 'mask', source: LINK },
      extra: { quality: 'hd' },
    })
    await t.rejects(json(PLAIN), { code: 'invalid_request', message: /'image'/ })
    await t.rejects(json({ ...PLAIN, image: URI, mask: 'x' }), { message: /'mask'/ })
  })
})

t.test('deep bodies are refused', async (t) => {
  // A body that nests too deep is a 400 at every endpoint, before anything goes through it level by level.
  const USUAL = `"model":"m","prompt":"A mill","max_tokens":1,"input":"hi",
  "messages":[{"role":"user","content":"hi"}],"contents":[{"parts":[{"text":"hi"}]}]`

  /** One level is the body itself. */
  const nested = (levels: number, open = '[', close = ']') =>
    Buffer.from(`{${USUAL},"x":${open.repeat(levels - 1)}${close.repeat(levels - 1)}}`)

  const schemas: Readonly<Record<string, ZodType>> = {
    imageEditRequest,
    avatarRequest,
    clipSubtitleRequest,
    musicRequest,
    speechRequest,
    transcriptRequest,
    voiceRequest,
  }
  const READERS: Readonly<Record<string, (body: Buffer) => unknown>> = {
    chat: readChatCall,
    agents: readAgentRequest,
    messages: (body) => messagesDialect.read({ query: '', body }),
    count: (body) => messagesCount.read({ query: '', body }),
    // Here a prompt is one that the upstream has stored, and is refused.
    responses: (body) =>
      responsesDialect.read({
        query: '',
        body: Buffer.from(body.toString().replace('"prompt":"A mill",', '')),
      }),
    contents: (body) => generateContentDialect.read({ model: 'm', query: '', body }),
    images: (body) => readGeneration({ body }),
    videos: (body) => readJsonBody(videoRequest, body, VIDEO_BODY),
    anyVideo: (body) => readJsonBody(modelNamed, body, VIDEO_BODY),
    ...Object.fromEntries(
      Object.entries(schemas).map(([name, schema]) => [name, (body: Buffer) => readJsonBody(schema, body)]),
    ),
  }
  /** Whose contract the usual body keeps. */
  const TAKES_IT = [
    'chat',
    'agents',
    'messages',
    'count',
    'responses',
    'contents',
    'images',
    'videos',
    'anyVideo',
  ]

  for (const [name, read] of Object.entries(READERS))
    t.test(name, async (t) => {
      const tooDeep = { code: 'invalid_request', status: 400, message: /deeper than 512 levels/ }
      t.throws(() => read(nested(MAX_JSON_LEVELS + 1)), tooDeep)
      t.throws(() => read(nested(2500, '{"a":', '}')), tooDeep)
      t.throws(() => read(nested(1_000_000)), tooDeep)
      if (TAKES_IT.includes(name)) t.doesNotThrow(() => read(nested(MAX_JSON_LEVELS)))
    })

  t.test('an upstream answer that nests too deep is no JSON', async (t) => {
    const answer = (levels: number) => ({
      status: 200,
      headers: new Map(),
      body: Buffer.from(`{"data":${'['.repeat(levels)}${']'.repeat(levels)}}`),
    })
    t.equal(parseAnswer(answer(3000) as unknown as Parameters<typeof parseAnswer>[0]), undefined)
    t.not(parseAnswer(answer(300) as unknown as Parameters<typeof parseAnswer>[0]), undefined)
  })
})

t.test('models are chosen for media', async (t) => {
  // Which model a request of media is for: who may call it, and what is answered where there is none.
  const loaded = loadConfigFile(DEMONSTRATION_FILE, { TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1' })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const { config } = loaded
  const whole = createCatalog(config)

  const DIGITAL = /^(?:dh|clip)-/
  const without = createCatalog({ ...config, models: config.models.filter(({ id }) => !DIGITAL.test(id)) })
  const idle = createCatalog({
    ...config,
    models: config.models.map((entry) => (DIGITAL.test(entry.id) ? { ...entry, callable: false } : entry)),
  })

  const keyFor = (allowedModels: readonly string[] | null) =>
    ({ key: { allowedModels }, account: { allowedModels: null } }) as Partial<KnownKey> as KnownKey
  const anyone = keyFor(null)

  t.test('a missing model is 400, but 404 for those of digital humans and clips', async (t) => {
    const names = config.models.map(({ id }) => id).filter((id) => DIGITAL.test(id))
    t.equal(names.length, 8)
    for (const name of names) {
      t.equal(selectMediaModel(whole, anyone, name).id, name)
      for (const catalog of [without, idle])
        t.throws(
          () => selectMediaModel(catalog, anyone, name),
          { code: 'model_not_found', status: 404 },
          name,
        )
    }
    for (const name of ['dh-nothing', 'clip-nothing'])
      t.throws(() => selectMediaModel(whole, anyone, name), { code: 'model_not_found', status: 404 }, name)
    for (const name of ['nothing', 'sonata-next', 'my-dh-nothing', 'constructor'])
      t.throws(() => selectMediaModel(whole, anyone, name), { code: 'model_not_found', status: 400 }, name)
  })

  t.test('a key is asked for the model that permits the call', async (t) => {
    const forbidden = { code: 'model_not_allowed', status: 403 }
    t.throws(() => selectMediaModel(whole, keyFor([]), 'demo-image'), forbidden)
    t.throws(
      () => selectMediaModel(whole, keyFor(['clip-subtitle']), 'clip-subtitle', 'clip-compose'),
      forbidden,
    )
    const composing = keyFor(['clip-compose'])
    t.equal(selectMediaModel(whole, composing, 'clip-subtitle', 'clip-compose').id, 'clip-subtitle')
    t.throws(() => selectMediaModel(whole, composing, 'clip-subtitle'), forbidden)
  })
})

t.test('refused uploads do not stay', async (t) => {
  // Files of a form that is refused leave the disk, wherever the refusal comes from; an account has a quota of them, and
  // they tell one intent from another.
  const KEY = `sk-tollgate-${'a'.repeat(64)}`
  const PNG = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
  const GOOD: readonly Part[] = [
    ['model', 'sketch'],
    ['prompt', 'bluer'],
    ['async', 'true'],
  ]

  const catalog = createCatalog(
    configFile.parse({
      models: [
        { id: 'sketch', endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '4' } },
      ],
      channels: [
        {
          id: 'open',
          protocol: 'openai-images',
          base_url: 'http://upstream.test/v1',
          api_key: 'k',
          models: { sketch: 'sketch' },
        },
      ],
    }),
  )

  type Part = readonly [name: string, value: string | Buffer]

  function requestOf(parts: readonly Part[], requestId: string): GatewayRequest {
    const form: GatewayRequest['form'] = {
      async read(_, takeFile) {
        const fields: [string, string][] = []
        for (const [field, value] of parts) {
          if (typeof value === 'string') {
            fields.push([field, value])
            continue
          }
          const content = (async function* () {
            yield value
          })()
          await takeFile({ field, name: 'a.png', mediaType: 'image/png', content }, fields)
        }
        return fields
      },
    }
    return {
      requestId,
      method: 'POST',
      path: '/v1/images/edits',
      params: NO_PARAMS,
      query: '',
      header: (name) => (name === 'x-api-key' ? KEY : ''),
      hasHeader: () => false,
      body: Buffer.alloc(0),
      form,
      submittedAt: Date.now(),
      startedAt: 0,
    }
  }

  async function openEndpoint(t: Test, submit: (order: TaskOrder) => Observable<Task>, maxBytes?: number) {
    const { store, folder } = await folderStore(t)
    const refused: Settlement[] = []
    let stores = 0
    const known = knownKey({ view: walletView('10') })
    const uploads = new Uploads({ files: store, ...(maxBytes !== undefined && { maxBytes }) })
    const orders = {
      access: {
        credentials: { peek: () => known },
        catalog: () => catalog,
        onRefused: (settlement: Settlement) => refused.push(settlement),
      },
      idempotency: {},
      uploads,
      createTask: (order: TaskOrder) => lastValueFrom(submit(order)),
      awaitTask: (_: TaskOrder, task: Task) => of(task),
    } as unknown as MediaOrders
    const images = {
      files: {
        put: (...put: Parameters<typeof store.put>) => {
          stores++
          return store.put(...put)
        },
      },
      objects: { recordObjects: async () => undefined },
    } as unknown as ImageStore
    let number = 0
    const send = (parts: readonly Part[]) => editImages(orders, images)(requestOf(parts, `req_${number++}`))
    return {
      refused,
      send,
      stores: () => stores,
      failureOf: (parts: readonly Part[]) =>
        lastValueFrom(send(parts), { defaultValue: null }).then(
          () => t.fail('it was answered'),
          (error: unknown) => error as Failure,
        ),
      left: () =>
        readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ name, parentPath }) => join(parentPath, name)),
    }
  }

  const taskOf = (order: TaskOrder, requestId = order.caller.request.requestId) =>
    of({ id: 'img_1', requestId, kind: 'image', state: 'queued', model: 'sketch', submittedAt: 0 } as Task)

  t.test('a refusal behind the form removes its files', async (t) => {
    const refusals: ReadonlyArray<readonly [string, readonly Part[], RegExp]> = [
      ['a field behind the file', [['image', PNG], ...GOOD, ['n', '99']], /'n'/],
      [
        'no prompt',
        [
          ['image', PNG],
          ['model', 'sketch'],
        ],
        /'prompt'/,
      ],
      [
        'an unknown model behind the file',
        [['image', PNG], ...GOOD.slice(1), ['model', 'no-such']],
        /no-such/,
      ],
      ['more than the wallet has', [...GOOD, ['n', '9'], ['image', PNG]], /balance/i],
    ]
    const { left, failureOf, refused } = await openEndpoint(t, () => EMPTY)
    for (const [what, parts, message] of refusals) {
      t.match(await failureOf(parts), { message }, what)
      await until('the files are gone', () => left().length === 0)
    }
    t.equal(refused.length, refusals.length)
  })

  t.test('what is wrong before the file is said before it is stored', async (t) => {
    const { stores, failureOf } = await openEndpoint(t, () => EMPTY)
    t.match(await failureOf([...GOOD, ['n', '99'], ['image', PNG]]), { message: /'n'/ })
    t.match(
      await failureOf([
        ['model', 'no-such'],
        ['image', PNG],
      ]),
      { code: 'model_not_found' },
    )
    t.equal(stores(), 0)
  })

  t.test('a task that could not be made leaves none, one that was made keeps them', async (t) => {
    const full: readonly Part[] = [...GOOD, ['image', PNG]]
    const failing = await openEndpoint(t, () =>
      throwError(() => new Failure('quota_exceeded', 'No balance.')),
    )
    t.match(await failing.failureOf(full), { code: 'quota_exceeded' })
    await until('the files are gone', () => failing.left().length === 0)

    const making = await openEndpoint(t, (order) => taskOf(order))
    await lastValueFrom(making.send(full))
    t.equal(making.left().length, 1)

    const replayed = await openEndpoint(t, (order) => taskOf(order, 'req_of_the_first'))
    await lastValueFrom(replayed.send(full))
    await until('the files are gone', () => replayed.left().length === 0)
  })

  t.test('a client that leaves: files stay where a task may have them, else not', async (t) => {
    let isSubmitted = false
    const { send, left } = await openEndpoint(t, () => {
      isSubmitted = true
      return NEVER
    })
    const sent = send([...GOOD, ['image', PNG]]).subscribe()
    await until('the submit', () => isSubmitted)
    sent.unsubscribe()
    t.equal(left().length, 1)
    send([...GOOD, ['image', PNG]])
      .subscribe()
      .unsubscribe()
    await until('only the first file', () => left().length === 1)
  })

  t.test('an account has only so much on the way', async (t) => {
    const never = await openEndpoint(t, () => EMPTY, 2 * PNG.length)
    t.match(await never.failureOf([...GOOD, ['image[]', PNG], ['image[]', PNG], ['image[]', PNG]]), {
      code: 'rate_limit_exceeded',
      message: /files that this account is sending exceed/,
    })
    await until('the files are gone', () => never.left().length === 0)
    const uploads = new Uploads({ files: { delete: async () => undefined }, maxBytes: 100 })
    const [one, two] = [uploads.begin('acc_a'), uploads.begin('acc_a')]
    one.count(80)
    t.throws(() => two.count(30), { code: 'rate_limit_exceeded' })
    uploads.begin('acc_b').count(100)
    one.handOver()
    two.count(100)
    await two.end()
    await two.discard()
    uploads.begin('acc_a').count(100)
  })
})

t.test('sound of a video decides its price', async (t) => {
  // A request that says whether its video has sound, or leaves it to the model, is priced by what its channel makes.
  const caller = {} as VideoParams['caller']

  const routeTo = (
    id: string,
    protocol: ChannelEntry['protocol'],
    more: Partial<ChannelEntry> = {},
  ): Route => ({
    channel: { ...channelAt('https://up.example', { id }), protocol, ...more },
    upstreamModel: 'm',
    protocol,
    cost: null,
    isTranslated: false,
  })
  const ark = routeTo('ark', 'ark-video')
  const vertex = routeTo('vertex', 'veo', { provider: 'vertex' })
  const gemini = routeTo('gemini', 'veo')
  const minimax = routeTo('minimax', 'minimax-video')
  const nameless = routeTo('nameless', 'fal', { input_names: { generate_audio: '' } })

  const BOTH = { unit: 'second', per_unit: '1', with_audio: { per_unit: '3' } }

  interface Asked {
    readonly generate_audio?: boolean | null
    readonly resolution?: string
    readonly content?: unknown
  }

  /** Returns what is held for a second, what of sound is sent on, and the channels. */
  async function made(asked: Asked, pricing: object, default_audio?: boolean, routes = [ark]) {
    const entry = modelEntry.parse({
      ...{ id: 'film', endpoint_type: 'videos_generations', pricing },
      ...(default_audio !== undefined && { videos: { default_audio } }),
    })
    const body = { model: 'film', prompt: 'A fox', duration: 1, ...asked }
    // Runway makes a video of a video in the default length alone.
    const videos = { ...entry.videos, default_duration: 1 }
    const params = { caller, body, entry: { ...entry, videos }, routes }
    const { job, variant, routes: able } = await VIDEO_JOBS.video({} as VideoSources, params)
    const { hold, price } = priceJob(
      { id: 'film', entry: params.entry, price: null, strategy: 'priority', writesCache: false },
      job,
      variant,
    )
    const { sound } = price as { sound: boolean }
    const { generate_audio } = job as { generate_audio: boolean | null }
    return {
      held: printCredits(hold),
      sound,
      sent: generate_audio,
      to: able.map(({ channel }) => channel.id),
    }
  }

  const refusal = (message: RegExp) => ({ code: 'invalid_request', status: 400, message })

  t.test(
    'sound is priced as asked for, else as the model makes it, and nothing is sent unasked',
    async (t) => {
      t.match(await made({}, BOTH), { held: '1', sound: false, sent: null })
      t.match(await made({ generate_audio: true }, BOTH), { held: '3', sound: true, sent: true })
      t.match(await made({ generate_audio: false }, BOTH), { held: '1', sound: false, sent: false })
      t.match(await made({}, BOTH, true), { held: '3', sound: true, sent: null })
      t.match(await made({ generate_audio: null }, BOTH, true), { held: '3', sound: true, sent: null })
      t.match(await made({ generate_audio: false }, BOTH, true), { held: '1', sound: false, sent: false })
    },
  )

  t.test('a model with one price has it with sound too, through every channel', async (t) => {
    const one = { unit: 'second', per_unit: '1' }
    for (const generate_audio of [true, false, null])
      t.match(await made({ generate_audio }, one, undefined, [ark, gemini, minimax, nameless]), {
        held: '1',
        sent: generate_audio,
        to: ['ark', 'gemini', 'minimax', 'nameless'],
      })
  })

  t.test('a resolution without a price for it is refused, and so is sound without any', async (t) => {
    const pricing = {
      unit: 'second',
      variants: { '720p': '1', '1080p': '2' },
      with_audio: { variants: { '1080p': '4' } },
    }
    t.match(await made({ generate_audio: true, resolution: '1080P' }, pricing), { held: '4' })
    t.match(await made({ resolution: '720p' }, pricing), { held: '1' })
    const asked = { generate_audio: true, resolution: '720p' }
    await t.rejects(made(asked, pricing), refusal(/'resolution'.*the model has 1080p with sound$/))
    const unheard = { resolution: '4k' }
    await t.rejects(made(unheard, pricing), refusal(/'resolution'.*720p, 1080p without sound$/))
    const silent = { unit: 'second', per_unit: '1', with_audio: {} }
    t.match(await made({}, silent), { held: '1' })
    await t.rejects(made({ generate_audio: true }, silent), refusal(/'generate_audio'.*no price/))
  })

  t.test('a channel that cannot be asked is used for what it makes by itself alone', async (t) => {
    const all = [gemini, vertex, nameless, minimax]
    t.same((await made({}, BOTH, true, all)).to, ['gemini', 'vertex', 'nameless', 'minimax'])
    t.same((await made({ generate_audio: true }, BOTH, true, all)).to.length, 4)
    t.match(await made({ generate_audio: false }, BOTH, true, all), { held: '1', to: ['vertex'] })
    t.match(await made({ generate_audio: true }, BOTH, false, all), { held: '3', to: ['vertex'] })
    const always = refusal(/'generate_audio'.*always made with sound: leave the field out/)
    await t.rejects(made({ generate_audio: false }, BOTH, true, [gemini]), always)
    const never = refusal(/'generate_audio'.*always made without sound/)
    await t.rejects(made({ generate_audio: true }, BOTH, false, [minimax]), never)
  })

  t.test('so it is where only the operator pays for sound', async (t) => {
    const cost = { film: { ...BOTH, changes: [], pixel_tiers: [], tiers: [] } } as unknown as NonNullable<
      ChannelEntry['cost']
    >
    const paid = routeTo('paid', 'runway', { cost })
    const content = [{ type: 'video_url', video_url: 'https://example.com/c.mp4' }]
    const one = { unit: 'second', per_unit: '1' }
    t.same((await made({ generate_audio: true, content }, one, false, [paid, ark])).to, ['ark'])
    t.same((await made({ generate_audio: true }, one, false, [paid, ark])).to, ['paid', 'ark'])
  })
})

t.test('video requests become jobs', async (t) => {
  // What clients write becomes what upstreams are asked for.
  const LINK = 'https://example.com'
  const url = (name: string) => ({ from: 'url', url: `${LINK}/${name}` })
  const routeTo = (id: string): Route => ({
    channel: channelAt(`${LINK}/${id}`, { id }),
    upstreamModel: 'm',
    protocol: 'task',
    cost: null,
    isTranslated: false,
  })
  const routes = [routeTo('other'), routeTo('studio')]
  const caller = { known: { account: { id: 'acc_a' } } } as unknown as Parameters<
    typeof buildComposeJob
  >[1]['caller']
  /** For jobs that ask nobody. */
  const nobody = {} as VideoSources
  const entryOf = (more: object = {}) =>
    modelEntry.parse({ id: 'film', endpoint_type: 'videos_generations', ...more })
  const entry = entryOf({ pricing: { unit: 'second', per_unit: '1' } })

  t.test('an ordinary video takes words before parts, roles as they are, and no unknown field', async (t) => {
    const body = {
      model: 'film',
      prompt: 'Dough rises.',
      content: [
        { type: 'text', text: 'Slowly.' },
        { type: 'image_url', image_url: { url: `${LINK}/a.png` }, role: 'first_frame' },
        { type: 'image_url', image_url: `${LINK}/b.png` },
        { type: 'video_url', video_url: { url: `${LINK}/c.mp4` }, role: 'reference_video' },
      ],
      duration: 5,
      resolution: '720p',
      seed: null,
      watermark: false,
      style: 'film',
      frames: 288,
      n: 4,
      nested: { a: [1] },
    }
    const made = await VIDEO_JOBS.video(nobody, { caller, body, entry, routes })
    t.strictSame(made.job, {
      work: 'video',
      content: [
        { type: 'text', text: 'Dough rises.' },
        { type: 'text', text: 'Slowly.' },
        { type: 'image', file: url('a.png'), role: 'first_frame' },
        { type: 'image', file: url('b.png'), role: null },
        { type: 'video', file: url('c.mp4'), role: 'reference_video' },
      ],
      duration: 5,
      resolution: '720p',
      ratio: null,
      seed: null,
      fps: null,
      watermark: false,
      camera_fixed: null,
      generate_audio: null,
    })
    t.strictSame(mediaJob.parse(made.job), made.job, 'as it is kept')
    t.strictSame(made.routes, routes)
  })

  t.test('what is made depends on the model, whichever of its names it goes by', async (t) => {
    const work = (id: string, ...aliases: string[]) =>
      readWork({ id, entry: modelEntry.parse({ id, aliases }) })
    t.equal(work('dh-lipsync-max'), 'lipsync')
    t.equal(work('our-motion', 'dh-motion'), 'motion')
    t.equal(work('film', 'toString'), 'video')
  })

  t.test('motion counts its portraits, and is of the standard grade unless told', async (t) => {
    const portrait = { type: 'image_url', image_url: { url: `${LINK}/a.png` } }
    const body = {
      model: 'dh-motion',
      source_video_url: `${LINK}/d.mp4`,
      content: [portrait, portrait],
      duration: 4,
    }
    const graded = entryOf({ pricing: { unit: 'second', variants: { standard: '2', max: '3' } } })
    const fast = { ...body, resolution: 'fast' }
    await t.rejects(async () => VIDEO_JOBS.motion(nobody, { caller, body: fast, entry: graded, routes }), {
      status: 400,
      message: /'resolution'.*standard, max/,
    })
    t.match(await VIDEO_JOBS.motion(nobody, { caller, body, entry: graded, routes }), {
      variant: 'standard',
      job: { face_count: 2, resolution: 'standard', portraits: [url('a.png'), url('a.png')] },
    })
    const told = { ...body, face_count: 7, resolution: 'max' }
    t.match(await VIDEO_JOBS.motion(nobody, { caller, body: told, entry: graded, routes }), {
      variant: 'max',
      job: { face_count: 7, resolution: 'max' },
    })
  })

  const segments = [
    { content: 'Good morning.', showRange: [0, 1840] as [number, number] },
    { content: 'Today we bake.', showRange: [1900, 4210] as [number, number] },
  ]
  const recognition = (more: Partial<Task> = {}) =>
    taskOf({
      id: 'asr_1',
      kind: 'subtitle',
      job: mediaJob.parse({ work: 'subtitle', video: url('talk.mp4') }),
      state: 'succeeded',
      endedAt: 1000,
      result: resultOf({ made_id: 'asr-5512', segments }),
      ...more,
    })

  function clipDeps(task: Task | null, now = 2000): ClipSources {
    const template = { style_id: 'bold', name: '', cover_url: '', demo_url: '', cate_name: '', scene: '' }
    return {
      tasks: { find: async () => task },
      lists: { clipTemplates: async ({ id }) => (id === 'studio' ? [template] : []) },
      now: () => now,
    }
  }
  const clip = { model: 'clip-compose', video_url: `${LINK}/talk.mp4`, asr_id: 'asr_1' }
  const compose = (body: object, deps = clipDeps(recognition())) =>
    buildComposeJob(deps, { caller, body, routes })

  t.test('a clip goes to the channel that recognised its words, under its name for them', async (t) => {
    const made = await compose(clip)
    t.same(
      made.routes.map(({ channel }) => channel.id),
      ['studio'],
    )
    t.strictSame(made.job, {
      work: 'clip_compose',
      video: url('talk.mp4'),
      asr_id: 'asr-5512',
      video_style_id: null,
      enable_title_effect: false,
      enable_caption_effect: true,
      enable_keyword_effect: true,
      title: null,
      music: null,
      name_card: null,
      sentences: null,
      pip_config: [],
    })
    const full = await compose({
      ...clip,
      video_style_id: 'bold',
      enable_title_effect: true,
      enable_caption_effect: false,
      title: '🍞'.repeat(31),
      music_url: `${LINK}/tune.mp3`,
      name_card: { name: 'Ada' },
      sentences: [{ content: 'Hello!', showRange: [7, 8] }, { content: 'We bake.' }],
      pip_config: [{ media_url: `${LINK}/a.jpg`, begin_time: 0, end_time: 1 }],
    })
    t.match(full.job, {
      video_style_id: 'bold',
      enable_title_effect: true,
      enable_caption_effect: false,
      title: '🍞'.repeat(30),
      music: url('tune.mp3'),
      name_card: { name: 'Ada', description: '' },
      sentences: [
        { content: 'Hello!', showRange: [0, 1840] },
        { content: 'We bake.', showRange: [1900, 4210] },
      ],
      pip_config: [{ media: url('a.jpg'), begin_time: 0, end_time: 1 }],
    })
    t.equal([...(full.job.title ?? '')].length, 30, 'cut off between characters')
  })

  t.test('a recognition is used for a day, where it is still known', async (t) => {
    await t.resolves(compose(clip, clipDeps(recognition(), 999 + RECOGNITION_KEPT_MS)))
    const refusals: readonly (readonly [ClipSources, RegExp])[] = [
      [
        clipDeps(recognition(), 1000 + RECOGNITION_KEPT_MS),
        /'asr_id'.*expired: recognise the subtitles again/,
      ],
      [clipDeps(null), /'asr_id'.*no such recognition/],
      [clipDeps(recognition({ state: 'running' })), /'asr_id'.*has not finished/],
      [clipDeps(recognition({ state: 'failed', result: null })), /'asr_id'.*failed/],
      [clipDeps(recognition({ channelId: 'gone' })), /'asr_id'.*cannot be used any more/],
    ]
    for (const [deps, message] of refusals)
      await t.rejects(compose(clip, deps), { status: 400, code: 'invalid_request', message })
    const other = { ...clip, video_url: `${LINK}/other.mp4` }
    await t.rejects(compose(other), {
      status: 400,
      code: 'invalid_request',
      message: /'video_url'.*not the video/,
    })
    const signed = { ...clip, video_url: `${LINK}/talk.mp4?expires=2&signature=b` }
    await t.resolves(compose(signed), 'a fresh signature leads to the same video')
    await t.rejects(compose({ ...clip, video_url: `${LINK}/talk.mp4?id=2` }), { code: 'invalid_request' })
    const lines = { ...clip, sentences: [{ content: 'Hello!' }] }
    await t.rejects(compose(lines), { status: 400, message: /2 lines expected.*there are 1/ })
    await t.rejects(compose({ ...clip, video_style_id: 'gone' }), { status: 400, message: /withdrawn/ })
  })

  const film = (body: object, more: object = { pricing: { unit: 'second', per_unit: '1' } }) =>
    VIDEO_JOBS.video(nobody, {
      caller,
      body: { model: 'film', prompt: 'A fox', ...body },
      entry: entryOf(more),
      routes,
    })
  const refused = (body: object, more: object, message: RegExp) => (t: Test) =>
    t.rejects(async () => film(body, more), { code: 'invalid_request', status: 400, message })

  t.test('length and resolution are always said, by configuration where the request does not', async (t) => {
    t.match((await film({})).job, { duration: 12, resolution: '720p' })
    const videos = { default_duration: 5, default_resolution: '1080p' }
    const pricing = { unit: 'second', per_unit: '1' }
    t.match((await film({}, { pricing, videos })).job, { duration: 5, resolution: '1080p' })
    const told = { duration: 2, resolution: '4k' }
    t.match((await film(told, { pricing, videos })).job, told)
  })

  t.test('a channel that takes no length makes the default one, at its price', async (t) => {
    const runway: Route = { ...routeTo('runway'), protocol: 'runway' }
    const videos = { default_duration: 5 }
    const entry = entryOf({ pricing: { unit: 'second', per_unit: '1' }, videos })
    const made = async (duration: number | null, to: readonly Route[], more: object = {}) => {
      const content = [{ type: 'video_url', video_url: `${LINK}/c.mp4` }]
      const body = { model: 'film', prompt: 'A fox', content, duration, ...more }
      const { job, routes: left } = await VIDEO_JOBS.video(nobody, { caller, body, entry, routes: to })
      return [(job as { duration: number }).duration, ...left.map(({ channel }) => channel.id)]
    }
    t.same(await made(null, [runway]), [5, 'runway'])
    t.same(await made(5, [runway]), [5, 'runway'])
    t.same(await made(1, [runway, ...routes]), [1, 'other', 'studio'], 'other channels make another length')
    t.same(
      await made(1, [runway], { content: [] }),
      [1, 'runway'],
      'only a video from a video has a fixed length',
    )
    const message = /'duration'.*5 seconds/
    await t.rejects(made(1, [runway]), { code: 'invalid_request', status: 400, message })
  })

  t.test('flags in words reach no upstream, whatever they are written with', async (t) => {
    const content = [
      { type: 'text', text: 'Slowly --rs 1080p' },
      { type: 'text', text: '--seed 7 --cf true' },
    ]
    t.match((await film({ prompt: 'A fox --dur 60 —fps=60', duration: 1, content })).job, {
      content: [
        { type: 'text', text: 'A fox' },
        { type: 'text', text: 'Slowly' },
      ],
      duration: 1,
      resolution: '720p',
    })
    await t.rejects(async () => film({ prompt: '--dur 60' }), { status: 400, message: /'prompt'.*flags/ })
  })

  t.test('flags that are split across texts reach no upstream either', async (t) => {
    const image = { type: 'image_url', image_url: `${LINK}/a.png` }
    const split = (...texts: string[]) => {
      const [first, ...rest] = texts.map((text) => ({ type: 'text', text }))
      return [first!, image, ...rest]
    }
    const wordsOf = async (content: object[]) =>
      ((await film({ prompt: undefined, content })).job as { content: { type: string; text?: string }[] })
        .content
    for (const [texts, left] of [
      [['A fox --', 'dur 60'], 'A fox'],
      [['A fox -', '-dur 60 jumps'], 'A fox jumps'],
      [['A fox --d', 'u', 'r 60'], 'A fox'],
      [['A fox \u2014cf', 'true'], 'A fox'],
      [['A fox \uff0d', '\uff0drs 1080p'], 'A fox'],
    ] as const) {
      const content = await wordsOf(split(...texts))
      t.same(
        content.filter(({ type }) => type === 'text').map(({ text }) => text),
        [left],
        JSON.stringify(texts),
      )
      t.equal(content.filter(({ type }) => type === 'image').length, 1)
    }
    const plain = await wordsOf(split('A fox - quick.', 'It jumps.'))
    t.same(
      plain.map(({ text }) => text),
      ['A fox - quick.', undefined, 'It jumps.'],
      'other texts stay as they are',
    )
    const onlyFlags = async () => film({ prompt: '--', content: [{ type: 'text', text: 'dur 60' }] })
    await t.rejects(onlyFlags, { status: 400, message: /'prompt'.*flags/ })
  })

  t.test(
    'a resolution chooses the price, however it is spelled; one without a price is refused',
    async (t) => {
      const variants = { '480p': '2', '720p': '4', '1080p': '9' }
      const made = async (pricing: object, resolution: string | null, videos?: object) => {
        const more = { pricing: { unit: 'second', ...pricing }, ...(videos !== undefined && { videos }) }
        const { job, variant } = await film({ duration: 2, resolution }, more)
        const { hold } = priceJob(
          { id: 'film', entry: entryOf(more), price: null, strategy: 'priority', writesCache: false },
          job,
          variant,
        )
        return [variant, (job as { resolution: string }).resolution, printCredits(hold)]
      }
      t.same(await made({ variants }, '1080p'), ['1080p', '1080p', '18'])
      t.same(await made({ variants, per_unit: '1' }, ' 1080P '), ['1080p', '1080p', '18'])
      t.same(
        await made({ variants, per_unit: '5' }, null),
        ['720p', '720p', '8'],
        'the dearest that it covers',
      )
      t.same(await made({ variants, per_unit: '1' }, null), ['480p', '480p', '4'], 'else the cheapest')
      const videos = { default_resolution: '1080p' }
      t.same(
        await made({ variants, per_unit: '5' }, null, videos),
        ['1080p', '1080p', '18'],
        'or as configured',
      )
      for (const per_unit of [undefined, '5'])
        for (const value of ['4k', '1080', 'toString'])
          await refused(
            { resolution: value },
            { pricing: { unit: 'second', variants, ...(per_unit && { per_unit }) } },
            /'resolution'.*480p, 720p, 1080p/,
          )(t)
      await refused({}, { pricing: { unit: 'second', variants } }, /'resolution'.*required.*480p/)(t)
      t.equal(chooseVariant(entry, 'resolution', '4k'), null, 'one price for all')
    },
  )
})

t.test('image orders', async (t) => {
  // What becomes of a request for images: the job, its price, what is held, and how long it is waited for.
  const image = (id: string, more = {}, pricing = {}) => ({
    id,
    endpoint_type: 'images_generations',
    pricing: { unit: 'image', per_unit: '4', ...pricing },
    ...more,
  })
  const channel = (id: string, protocol: string, ...models: string[]) => ({
    id,
    protocol,
    base_url: 'https://upstream.test',
    api_key: 'upstream-key-1',
    models: Object.fromEntries(models.map((model) => [model, model])),
  })
  const catalog = createCatalog(
    configFile.parse({
      models: [
        image('sketch'),
        image('grid', { images: { grid: true } }),
        image(
          'tiered',
          { images: { default_size: '2048x2048' } },
          { pixel_tiers: [{ from_pixels: 2_400_000, per_unit: '9' }], input_image: '1.5' },
        ),
        image('fine', {}, { variants: { low: '1', medium: '4', high: '16' } }),
        image('tiers', { images: { grid: true } }, { per_unit: undefined, variants: { sd: '4', hd: '10' } }),
        image('lonely'),
        { id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } },
      ],
      channels: [
        channel('open', 'openai-images', 'sketch', 'grid', 'fine', 'tiers'),
        channel('ark', 'ark-images', 'tiered'),
      ],
    }),
  )

  const { store } = await folderStore(t)
  const recorded: string[] = []
  const uploads = new Uploads({ files: store })
  const LINK_KEY = Buffer.alloc(32, 9)
  const inbox = {
    files: store,
    fileLinkKey: LINK_KEY,
    objects: {
      async recordObjects(objects: readonly { readonly key: string }[]) {
        for (const { key } of objects) recorded.push(key)
      },
    },
  }

  function ordered(model: string, more: Partial<ImageParams> = {}, balance = '1000') {
    const request = {
      model,
      prompt: 'A mill',
      n: 1,
      size: null,
      isAsync: false,
      isInline: false,
      isEdit: false,
      callback_url: null,
    }
    const caller = {
      request: { requestId: 'req_1', hasHeader: () => false },
      ends: { add() {} },
      known: { key: { kind: 'console' }, view: { balance: parseCredits(balance) } },
    } as unknown as AuthenticatedCall
    const records = { isAnswered: async () => false } as unknown as Idempotency['records']
    return orderImages(records, inbox, {
      ...caller,
      catalog,
      upload: uploads.begin('acc_a'),
      params: { ...request, images: [], mask: null, extra: {}, ...more },
      model: catalog.resolve(model)!,
    })
  }
  const held = async (...asked: Parameters<typeof ordered>) => printCredits((await ordered(...asked)).hold)

  const LINK = { field: 'image', source: 'https://example.com/a.png' }
  const PNG = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
  const inline = (bytes: Buffer) => ({
    field: 'image',
    source: `data:image/png;base64,${bytes.toString('base64')}`,
  })

  t.test('who waits for images waits 280 seconds, and nothing is owed of what comes later', async (t) => {
    t.match(await ordered('sketch'), { until: 'ended', deadlineMs: 280_000 })
    t.match(await ordered('sketch', { isAsync: true }), { until: 'accepted', deadlineMs: undefined })
  })

  t.test('the price of all of them is held: four at least of a grid', async (t) => {
    t.equal(await held('sketch', { n: 3 }), '12')
    t.equal(await held('grid'), '16')
    t.equal(await held('grid', { n: 4 }), '16')
    t.equal(await held('grid', { n: 10 }), '40')
    t.match(
      await ordered('grid', { n: 1 }),
      { job: { n: 1 } },
      'what is asked for is what the client asked for',
    )
  })

  t.test('a price by size is held by the size that is asked for, and each image that goes in', async (t) => {
    t.equal(await held('tiered'), '9')
    t.equal(await held('tiered', { size: '2K' }), '9')
    t.equal(await held('tiered', { size: '1600x1500' }), '9')
    t.equal(await held('tiered', { size: '1600x1499' }), '4')
    t.equal(await held('tiered', { size: '1024x1024', n: 2, images: [LINK, LINK] }), '11')
  })

  t.test('a quality with prices is one of them, and what is paid is what is asked for', async (t) => {
    const asked = async (model: string, quality: string | null, prompt = 'A mill') => {
      const extra = quality === null ? {} : { quality }
      const { job, hold } = await ordered(model, { extra, prompt })
      const { extra: sent, prompt: words } = job as { extra: { quality?: string }; prompt: string }
      return [words, sent.quality, printCredits(hold)]
    }
    t.same(await asked('fine', 'high'), ['A mill', 'high', '16'])
    t.same(await asked('fine', ' LOW '), ['A mill', 'low', '1'])
    t.same(await asked('fine', null), ['A mill', 'medium', '4'], 'what the base price covers is always said')
    t.same(await asked('tiers', 'high'), ['A mill --hd', undefined, '40'], 'four of a grid')
    t.same(await asked('tiers', 'sd', 'A mill --hd --repeat 4'), ['A mill --hd', undefined, '40'])
    t.same(await asked('sketch', 'ultra'), ['A mill', 'ultra', '4'], 'one price for all')
    for (const [model, quality] of [
      ['fine', 'ultra'],
      ['fine', 'auto'],
      ['tiers', null],
      ['tiers', 'ultra'],
    ] as const)
      await t.rejects(
        asked(model, quality),
        { status: 400, message: /'quality'.*the model has / },
        `${model} ${quality}`,
      )
    await t.rejects(asked('tiers', null, '--hd'), { status: 400, message: /'prompt'.*flags/ })
  })

  t.test(
    'an edit goes where edits are done; one without a mask to channels that only generate',
    async (t) => {
      const edit = { isEdit: true, images: [LINK] }
      t.match(await ordered('sketch', edit), {
        job: { work: 'image_edit' },
        routes: [{ channel: { id: 'open' } }],
      })
      t.match(await ordered('tiered', edit), { job: { work: 'image' }, routes: [{ channel: { id: 'ark' } }] })
      const masked = { ...edit, mask: { ...LINK, field: 'mask' } }
      t.match((await ordered('sketch', masked)).job, { mask: { from: 'url', url: LINK.source } })
      await t.rejects(ordered('tiered', masked), { code: 'no_channel_available' })
      for (const model of ['lonely', 'film'])
        await t.rejects(ordered(model), { code: 'no_channel_available' }, model)
    },
  )

  t.test('links stay links; what stands in the request goes into the store', async (t) => {
    const { job } = await ordered('sketch', { isEdit: true, images: [LINK, inline(PNG)], mask: inline(PNG) })
    const file = (number: number) => ({ from: 'store', key: `inputs/req_1-${number}.png`, bytes: PNG.length })
    t.match(job, { images: [{ from: 'url', url: LINK.source }, file(2)], mask: file(3) })
    t.equal((await store.head('inputs/req_1-3.png'))?.bytes, PNG.length)
    t.strictSame(recorded, ['inputs/req_1-2.png', 'inputs/req_1-3.png'], 'and goes in a day')
    await t.rejects(ordered('sketch', { images: [inline(Buffer.from('<svg/>'))] }), {
      code: 'invalid_request',
    })
  })

  t.test('an image in a text field of a form does not replace an uploaded file', async (t) => {
    const sent = (field: string, number: number) => {
      const key = `inputs/req_1-${number}.png`
      return { field, source: { from: 'store' as const, key, media_type: 'image/png', bytes: 4, name: '' } }
    }
    const [image, mask] = [sent('image', 1), sent('mask', 2)]
    const { job } = await ordered('sketch', { isEdit: true, images: [image, inline(PNG)], mask })
    t.match(job, { images: [image.source, { key: 'inputs/req_1-4.png' }], mask: mask.source })
  })

  t.test('a link of ours is the file that it leads to', async (t) => {
    const print = (key: string, at: number, signingKey = LINK_KEY) =>
      fileLinks('http://10.0.0.1:8080', signingKey).print(key, at)
    const put = (key: string, mediaType: string) => store.put(key, PNG, { mediaType, maxBytes: PNG.length })
    await Promise.all([put('images/img_1-1.png', 'image/png'), put('speech/spc_1.mp3', 'audio/mpeg')])
    const later = Date.now() + 60_000
    const first = async (source: string) =>
      (await ordered('sketch', { images: [{ field: 'image', source }] })).job
    const file = { from: 'store', key: 'images/img_1-1.png', media_type: 'image/png', bytes: PNG.length }
    t.match(await first(print('images/img_1-1.png', later)), { images: [{ ...file, name: 'img_1-1.png' }] })
    for (const url of [
      print('images/img_1-1.png', Date.now() - 60_000),
      print('images/img_1-1.png', later, Buffer.alloc(32, 8)),
      print('images/img_1-1.png', later).replace('1-1', '1-2'),
      print('images/gone.png', later),
      print('speech/spc_1.mp3', later),
    ])
      t.match(await first(url), { images: [{ from: 'url', url }] }, url)
  })

  t.test('nothing is stored without the money to pay', async (t) => {
    recorded.length = 0
    const asked = { n: 2, images: [inline(PNG)] }
    await t.rejects(ordered('sketch', asked, '7.99'), { code: 'quota_exceeded' })
    t.strictSame(recorded, [])
    await t.resolves(ordered('sketch', asked, '8'))
  })
})
