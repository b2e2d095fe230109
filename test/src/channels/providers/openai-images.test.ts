/** The adapter of OpenAI images. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { openaiImages } from '../../../../src/channels/providers/openai/images.ts'
import {
  answerOf,
  channelOf,
  fileWith,
  formOf,
  headerOf,
  jsonOf,
  linked,
  producedIn,
  stored,
  submitOf,
} from '../support.ts'

t.test('openai images adapter', async (t) => {
  const channel = channelOf('openai-images', 'https://up.example/v1', { 'X-Team': 'blue' })
  const png = readFileSync(new URL('../../../fixtures/media/picture.png', import.meta.url))
  const image = submitOf({ work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024' })

  t.test('a generation is JSON, and never says in which form the answer shall come', async (t) => {
    const extra = { quality: 'high', response_format: 'url', stream: true, partial_images: 2, model: 'mine' }
    const job = { work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024', extra }
    const request = openaiImages.submit(channel, submitOf(job, 'gpt-image-1'))
    t.equal(request.method, 'POST')
    t.equal(request.url, 'https://up.example/v1/images/generations')
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    t.equal(headerOf(request, 'x-team'), 'blue')
    t.equal(headerOf(request, 'content-type'), undefined)
    t.strictSame(jsonOf(request), {
      quality: 'high',
      model: 'gpt-image-1',
      prompt: 'a loaf',
      n: 2,
      size: '1024x1024',
    })
  })

  t.test('without a size the upstream has its own', async (t) => {
    const request = openaiImages.submit(channel, submitOf({ work: 'image', prompt: 'a loaf', n: 1 }))
    t.strictSame(jsonOf(request), { model: 'model-1', prompt: 'a loaf', n: 1 })
  })

  t.test('an edit is a form with the images and the mask', async (t) => {
    const job = {
      work: 'image_edit',
      prompt: 'as a woodcut',
      n: 1,
      images: [stored('a.png', 'image/png'), stored('b.png', 'image/png')],
      mask: stored('m.png', 'image/png'),
      extra: { output_compression: 80, background: 'opaque' },
    }
    const request = openaiImages.submit(channel, submitOf(job))
    t.equal(request.url, 'https://up.example/v1/images/edits')
    t.strictSame(formOf(request), [
      ['background', 'opaque'],
      ['output_compression', '80'],
      ['model', 'model-1'],
      ['prompt', 'as a woodcut'],
      ['n', '1'],
      ['image[]', 'inputs/a.png'],
      ['image[]', 'inputs/b.png'],
      ['mask', 'inputs/m.png'],
    ])
  })

  t.test('a generation from reference images is an edit; links are taken in first', async (t) => {
    const link = linked('https://example.com/a.png')
    const mask = linked('https://example.com/m.png')
    const kept = stored('b.png', 'image/png')
    const { job } = submitOf({ work: 'image', prompt: 'so', n: 1, images: [link, kept], mask })
    t.strictSame(openaiImages.takesIn?.(job), [link, mask])
    t.equal(openaiImages.inlines, false)
    const request = openaiImages.submit(
      channel,
      submitOf({ work: 'image', prompt: 'so', n: 1, images: [kept] }),
    )
    t.equal(request.url, 'https://up.example/v1/images/edits')
  })

  t.test('images come as bytes, whose kind and size are their own', async (t) => {
    const body = {
      created: 1763712000,
      data: [{ b64_json: png.toString('base64'), revised_prompt: 'a loaf of bread' }],
      size: '1024x1024',
      output_format: 'webp',
      usage: { total_tokens: 100 },
    }
    const outcome = producedIn(openaiImages.readSubmit(answerOf(200, body), image))
    t.strictSame(outcome.result.files, [
      fileWith({ role: 'image', media_type: 'image/png', width: 40, height: 24 }),
    ])
    t.strictSame(outcome.inline, [{ file: 0, bytes: png, mediaType: 'image/png' }])
  })

  t.test('images come as links or data URIs; one without either is not delivered', async (t) => {
    const body = {
      data: [
        { url: 'https://cdn.example/1.png' },
        { url: 'ftp://cdn.example/2.png' },
        { b64_json: '<html>no</html>' },
        { b64_json: '' },
        { revised_prompt: 'nothing' },
        { url: `data:image/png;base64,${png.toString('base64')}` },
      ],
      size: '1536x1024',
    }
    const outcome = producedIn(openaiImages.readSubmit(answerOf(200, body), image))
    t.strictSame(outcome.result.files, [
      fileWith({ role: 'image', upstream_url: 'https://cdn.example/1.png', width: 1536, height: 1024 }),
      fileWith({ role: 'image', media_type: 'image/png', width: 40, height: 24 }),
    ])
    t.strictSame(
      outcome.inline.map(({ file }) => file),
      [1],
    )
  })

  t.test('bytes of no known kind get no name that a browser would run', async (t) => {
    const unknown = Buffer.from([0, 1, 2, 3]).toString('base64')
    for (const [data, output_format] of [
      [{ url: `data:image/svg+xml;base64,${unknown}` }, undefined],
      [{ url: `data:text/html;charset=utf-8;base64,${unknown}` }, undefined],
      [{ b64_json: unknown }, 'svg+xml'],
    ] as const) {
      const { inline } = producedIn(
        openaiImages.readSubmit(answerOf(200, { data: [data], output_format }), image),
      )
      t.match(inline, [{ mediaType: 'image/png' }])
    }
  })

  t.test('refusals keep status and words', async (t) => {
    const policy = {
      error: { message: 'Your request was rejected.', code: 'moderation_blocked', type: 'image' },
    }
    const unpaid = {
      error: { message: 'Billing hard limit has been reached.', code: 'billing_hard_limit_reached' },
    }
    const refusals = [
      [answerOf(400, policy), 400, 'Your request was rejected.'],
      [answerOf(429, { error: { message: 'Pay.', code: 'insufficient_quota' } }), 402, 'Pay.'],
      [answerOf(400, unpaid), 402, 'Billing hard limit has been reached.'],
      [answerOf(429, { error: { message: 'Slow down.' } }), 429, 'Slow down.'],
      [answerOf(503, '<html>busy</html>'), 503, 'The upstream answered with status 503.'],
      [answerOf(307, ''), 502, 'The upstream answered with status 307.'],
      [answerOf(200, policy), 400, 'Your request was rejected.'],
      [answerOf(200, { error: 'internal' }), 502, 'internal'],
      [answerOf(200, { data: [{ b64_json: png.toString('base64') }], error: 'internal' }), 502, 'internal'],
    ] as const
    for (const [answer, status, message] of refusals) {
      t.strictSame(openaiImages.readSubmit(answer, image), { type: 'refused', status, message })
    }
  })

  t.test('a 200 that cannot be read is neither success nor refusal', async (t) => {
    const text = Buffer.from('<svg onload="x()">').toString('base64')
    const failed = '{"base_resp":{"status_code":1026,"status_msg":"no"},"data":null}'
    const texts = [`{"data":[{"b64_json":"${text}"}]}`, '{"data":[{"b64_json":"iVBORw0KGgo="}', failed]
    for (const body of ['', '<html>', '[]', 'null', '{}', '{"data":[]}', '{"data":{"url":"x"}}', ...texts]) {
      t.equal(openaiImages.readSubmit(answerOf(200, body), image).type, 'unknown', body)
    }
  })
})
