/** Of prompt and lyrics one is read; the length of the other one does not matter. */
import t from 'tap'
import { LYRICS_MAX_CHARS, MUSIC_PROMPT_MAX_CHARS, musicRequest } from '../../schemas/media/music.ts'

const issuesOf = (asked: object) => {
  const parsed = musicRequest.safeParse({ model: 'songs', ...asked })
  return parsed.success ? [] : parsed.error.issues.map(({ path }) => path.join('.'))
}

t.test('the limit holds for the one that is read', async (t) => {
  const prompt = '🐈'.repeat(MUSIC_PROMPT_MAX_CHARS)
  const lyrics = '🐈'.repeat(LYRICS_MAX_CHARS)
  const [longPrompt, longLyrics] = [`${prompt}!`, `${lyrics}!`]
  t.same(issuesOf({ prompt }), [])
  t.same(issuesOf({ prompt, lyrics }), [])
  t.same(issuesOf({ prompt: longPrompt }), ['prompt'])
  t.same(issuesOf({ prompt: longPrompt, lyrics: ' ' }), ['prompt'], 'blank lyrics are none')
  t.same(issuesOf({ prompt: longPrompt, lyrics }), [], 'custom mode ignores the prompt')
  t.same(issuesOf({ prompt: longPrompt, lyrics, instrumental: true }), ['prompt'], 'which then is read')
  t.same(issuesOf({ prompt, lyrics: longLyrics }), ['lyrics'])
  t.same(issuesOf({ prompt, lyrics: longLyrics, instrumental: true }), [], 'nobody sings')
  t.same(issuesOf({ prompt: longPrompt, lyrics: longLyrics }), ['lyrics'])
  t.same(issuesOf({ lyrics: ' ' }), [''])
})
