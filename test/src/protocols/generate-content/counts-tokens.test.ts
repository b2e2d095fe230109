/** A request to count tokens names its model in the path, and once more where it holds a whole request. */
import t from 'tap'
import { countBody, generateContentCount } from '../../../../src/protocols/generate-content/count.ts'

const CONTENTS = '"contents" : [{"role":"user", "parts":[{"text":"h\\u00e9llo"}]}]'
const read = (body: string, path = '/v1beta/models/ours:countTokens') =>
  generateContentCount.read({ path, query: '', body: Buffer.from(body) })
const counted = (body: string, upstreamModel = 'theirs') => countBody(read(body), upstreamModel).toString()

t.test('contents alone are passed on byte for byte', async (t) => {
  const body = `{ ${CONTENTS} , "other":1e400}`
  t.equal(counted(body), body)
  t.equal(read(body).model, 'ours')
  t.equal(read(body, '/v1beta/models/org%2Fours%3AcountTokens').model, 'org/ours')
})

t.test('in a whole request the model is named as the upstream does, and nothing else changes', async (t) => {
  const whole = (name: string, model: string) => `{"${name}": {${model} ${CONTENTS},"tools":[{"x":1}] } }`
  for (const name of ['generateContentRequest', 'generate_content_request'])
    for (const model of ['', '"model":"models/ours",', '"model": "ours" ,'])
      for (const [upstream, resource] of [
        ['theirs', 'models/theirs'],
        ['tunedModels/t', 'tunedModels/t'],
      ] as const) {
        const sent = JSON.parse(counted(whole(name, model), upstream))
        const asked = JSON.parse(whole(name, model))
        t.strictSame(sent, { [name]: { ...asked[name], model: resource } })
      }
  const exact = counted(`{"generateContentRequest":{"model": "ours" , ${CONTENTS}}}`)
  t.equal(exact, `{"generateContentRequest":{"model": "models/theirs" , ${CONTENTS}}}`)
})

t.test('what could be read in two ways is refused', async (t) => {
  const refused: readonly (readonly [body: string, message: RegExp])[] = [
    ['', /empty/],
    ['{', /JSON/],
    ['[]', /body/],
    ['{}', /'contents'/],
    ['{"contents":[]}', /'contents'/],
    ['{"contents":7}', /'contents'/],
    [`{${CONTENTS},${CONTENTS}}`, /'contents'.*more than once/],
    [`{${CONTENTS},"generateContentRequest":{${CONTENTS}}}`, /'generateContentRequest'.*with 'contents'/],
    [
      `{"generate_content_request":{${CONTENTS}},"generateContentRequest":{${CONTENTS}}}`,
      /given together with/,
    ],
    ['{"generateContentRequest":{}}', /'generateContentRequest\.contents'/],
    [`{"generateContentRequest":{"model":"models/dear",${CONTENTS}}}`, /not the model that the path names/],
    [
      `{"generateContentRequest":{"model":"ours","model":"dear",${CONTENTS}}}`,
      /'generateContentRequest\.model'/,
    ],
  ]
  for (const [body, message] of refused)
    t.throws(() => read(body), { code: 'invalid_request', message }, body)
  for (const path of [
    '/v1beta/models/ours:generateContent',
    '/v1beta/models/:countTokens',
    '/v1beta/models/ours',
  ])
    t.throws(() => read(`{${CONTENTS}}`, path), { code: 'not_found' }, path)
})
