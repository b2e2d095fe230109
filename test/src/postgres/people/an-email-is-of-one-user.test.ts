/** An email address that several users ask for becomes that of one, and the others are refused. */
import t from 'tap'
import { startDatabase } from '../support.ts'

const USERS = 8
const ROUNDS = 5
const { database } = await startDatabase(t)

t.test('an email that several users confirm at the same time', async (t) => {
  const users = await Promise.all(
    Array.from({ length: USERS }, (_, at) =>
      database.users.create({ email: `user${at}@example.com`, name: `User ${at}`, credit: 0n }),
    ),
  )
  for (let round = 0; round < ROUNDS; round++) {
    const answers = await Promise.all(
      users.map(({ id }) =>
        database.users.setEmail(id, `wanted${round}@example.com`).then(
          () => 'changed',
          (error) => error.code,
        ),
      ),
    )
    t.same(
      answers.toSorted(),
      ['changed', ...Array.from({ length: USERS - 1 }, () => 'email_taken')],
      `round ${round}`,
    )
  }
})
