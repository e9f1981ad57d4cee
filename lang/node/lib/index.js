// SPDX-License-Identifier: Apache-2.0
'use strict';
const { call, translate, ...errors } = require('./errors');

module.exports = {
  Client: require('./client').Client,
  ...require('./lock'),
  ...require('./several'),
  Hold: require('./hold').Hold,
  Election: require('./election').Election,
  version: require('./native').version(),
  ...errors,
};
