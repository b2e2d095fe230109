/** The reference page for people: it runs offline, and its script is the one that is served. */
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { PAGE, REFERENCE_SCRIPT_PATH } from '../../../src/openapi/page.ts'
import { REFERENCE } from '../../../src/server/routes/reference.ts'

t.test('the page loads nothing but the document and the script', async (t) => {
  const loaded = [...PAGE.matchAll(/\b(?:src|href|data-url)="([^"]*)"/g)].map(([, url]) => url)
  t.same(new Set(loaded), new Set(['/openapi.json', REFERENCE_SCRIPT_PATH]))
  t.notMatch(PAGE, /https?:|<style|<script>/)
})

t.test('the script mounts on the element of the page', async (t) => {
  const script = gunzipSync(await REFERENCE.script()).toString()
  t.match(script, 'createApiReference')
  t.match(script, 'api-reference')
  t.match(PAGE, 'id="api-reference"')
})
