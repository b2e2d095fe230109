/** A refused request is not parsed for the name of its model: its beginning and its end are searched. */
import t from 'tap'
import { REFUSED_MODEL_MAX_CHARS, refusedModel } from '../../../../src/protocols/request/refused-model.ts'

const modelIn = (body: string): string => refusedModel('/v1/chat/completions', Buffer.from(body))
const LONG = JSON.stringify([{ role: 'user', content: 'x'.repeat(100_000) }])

t.test('the model is found at the beginning and at the end', async (t) => {
  t.equal(modelIn('{"model":"m"}'), 'm')
  t.equal(modelIn(` { "stream": true , "model" : "a\\u0062c" }`), 'abc')
  t.equal(modelIn(`{"model":"m","messages":${LONG}}`), 'm')
  t.equal(modelIn(`{"messages":${LONG},"model":"m"}`), 'm')
  t.equal(
    modelIn(`{"messages":${LONG}, "model": "m/n", "stream": true, "temperature": 0.5, "user":"u" } `),
    'm/n',
  )
  t.equal(refusedModel('/v1beta/models/g:generateContent', Buffer.from(LONG)), 'g')
})

t.test('what is not plainly the model of the request is none', async (t) => {
  for (const body of [
    '',
    'no JSON',
    '{"model":5}',
    '[{"model":"m"}]',
    `{"messages":${LONG},"metadata":{"a":1,"model":"m"}}`,
    `{"messages":${LONG},"user":"x,\\"model\\":\\"m\\"}"}`,
    `{"messages":${LONG},"model":"m","metadata":{"a":1},"messages":${LONG}}`,
    `{"model":"${'m'.repeat(3000)}"}`,
  ])
    t.equal(modelIn(body), '', body.slice(-80))
  t.equal(modelIn(`{"model":"${'m'.repeat(500)}"}`).length, REFUSED_MODEL_MAX_CHARS)
})
