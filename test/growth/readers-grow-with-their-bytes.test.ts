/** The time to read what a client or an upstream sends grows with its length, and no faster, whatever it holds. */
import t from 'tap'
import { growthFault } from './measure.ts'
import { GROWTH_READERS, readGrowing } from './readers.ts'
import { SHAPES } from './shapes.ts'

const BYTES = 4_096

for (const [name, reader] of Object.entries(GROWTH_READERS))
  t.test(name, async (t) => {
    for (const [shape, make] of Object.entries(SHAPES))
      for (const around of reader.around) {
        const fault = await growthFault((bytes) => readGrowing(reader, around, make(bytes)), BYTES)
        t.equal(fault, null, `${shape} in ${around}`)
      }
  })
