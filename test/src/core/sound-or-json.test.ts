/** Who gets the sound itself, and who the JSON that leads to it. */
import t from 'tap'
import { namesJson, prefersSound } from '../../../src/core/accepted-format.ts'

t.test('sound goes to clients that name it, or plain bytes, before JSON', async (t) => {
  for (const accept of [
    'application/octet-stream',
    'audio/*',
    'audio/mpeg',
    'Audio/WAV, */*;q=0.1',
    'audio/*;q=0.5, */*;q=0.4',
    'application/json;q=0.5, audio/mpeg',
    '*/*, application/octet-stream',
  ])
    t.ok(prefersSound(accept), accept)
  for (const accept of [
    '',
    '*/*',
    'application/json',
    'application/*',
    'text/html, */*',
    'audio/*;q=0',
    'application/json, audio/*;q=0.9',
    'application/json, audio/mpeg',
  ])
    t.notOk(prefersSound(accept), accept)
})

t.test('JSON is named by its type or its family', async (t) => {
  for (const accept of ['application/json', 'text/html, application/json;q=0.1', 'application/*'])
    t.ok(namesJson(accept), accept)
  for (const accept of ['', '*/*', 'audio/*', 'application/json;q=0']) t.notOk(namesJson(accept), accept)
})
