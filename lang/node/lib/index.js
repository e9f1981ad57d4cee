// SPDX-License-Identifier: Apache-2.0
'use strict';
const { call, translate, ...errors } = require('./errors');

module.exports = {
  Client: require('./client').Client,
  Lock: require('./lock').Lock,
  Hold: require('./hold').Hold,
  Election: require('./election').Election,
  version: require('./native').version(),
  ...errors,
};
