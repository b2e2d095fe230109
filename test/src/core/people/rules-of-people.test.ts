/** Emails, passwords and recovery codes. */
import fc from 'fast-check'
import t from 'tap'
import { isEmail, normalizeEmail } from '../../../../src/core/people/email.ts'
import { passwordProblem } from '../../../../src/core/people/password-policy.ts'
import {
  generateRecoveryCodes,
  isRecoveryCode,
  recoveryCodeHash,
} from '../../../../src/core/people/recovery-codes.ts'

t.test('an email is compared without case and outer spaces', async (t) => {
  t.equal(normalizeEmail('  Ada.Lovelace@Example.COM '), 'ada.lovelace@example.com')
  t.equal(normalizeEmail('u\u0308@example.com'), normalizeEmail('ü@example.com'))
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const once = normalizeEmail(text)
      return normalizeEmail(once) === once
    }),
  )
})

t.test('an email has the form of one', async (t) => {
  for (const email of [
    'a@b',
    'ada+x@example.com',
    'operator@localhost',
    '用户@例子.中国',
    "o'neil@example.ie",
  ])
    t.ok(isEmail(email), email)
  for (const email of [
    '',
    'ada',
    '@example.com',
    'ada@',
    'a@b@c',
    'a b@example.com',
    'ada@example..com',
    'ada@.example.com',
    'ada@example.com\nbcc: eve@example.com',
    '<ada@example.com>',
    `${'a'.repeat(250)}@b.cd`,
  ])
    t.notOk(isEmail(email), email)
})

t.test('a password is long and uncommon, and of any characters', async (t) => {
  const problem = (password: string) => passwordProblem(password, 'ada.lovelace@example.com')
  t.equal(problem('correct horse battery'), null)
  t.equal(problem('我的密码很长很长很长'), null)
  t.equal(problem('x1y2z3'.repeat(42)), null)
  t.match(problem('nine char'), 'has 9 characters')
  t.match(problem('😀😀😀😀😀😀😀😀😀'), 'has 9 characters', 'a character of two code units is one')
  t.match(problem('x1y2z3'.repeat(43)), 'at most 256')
  for (const common of [
    '1234567890',
    'Password123',
    'QWERTYUIOP',
    'q1w2e3r4t5',
    'aaaaaaaaaaaa',
    'basketball',
  ])
    t.match(problem(common), 'commonest', common)
  t.match(problem('Ada.Lovelace@example.com'), 'email address')
})

t.test('recovery codes differ and are read however they are grouped', async (t) => {
  const codes = generateRecoveryCodes()
  t.equal(new Set(codes).size, 10)
  for (const code of codes) {
    t.match(code, /^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){3}$/)
    t.ok(isRecoveryCode(code.replaceAll('-', '').toUpperCase()))
    t.same(recoveryCodeHash(code.replaceAll('-', ' ')), recoveryCodeHash(code))
  }
  t.notOk(isRecoveryCode('123456'))
})
