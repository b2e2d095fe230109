/** A call says what was counted: five seconds of a video are no five videos. */
import t from 'tap'

/** By address: the types of these files need those of a browser. */
const load = (path: string) => import(new URL(`../../console/src/${path}`, import.meta.url).href)
const { activateLanguage } = await load('i18n.ts')
const { capabilityName, endpointName, printUnits, unitName } = await load('ui/units.ts')

Object.assign(globalThis, { document: { documentElement: {} } })
await activateLanguage('en')

t.test('units', async (t) => {
  t.equal(printUnits(5, 'second', 'video'), '5 seconds')
  t.equal(printUnits(11, '1000_characters', 'audio'), '11 characters')
  t.equal(printUnits(1, 'image', 'image'), '1 image')
  t.equal(printUnits(1, 'generation', 'music'), '1 music')
  t.equal(printUnits(3, undefined, 'video'), '3 video', 'of a model that has left the catalogue')
  t.equal(unitName('1000_characters'), '1,000 characters')
  t.equal(endpointName('transcripts_extract'), 'Transcripts')
  t.equal(capabilityName('vision'), 'reads images')
})
